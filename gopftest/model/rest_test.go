package model_test

import (
	"maps"
	"slices"
	"time"

	"gopf.dev/gopf"
)

// idle checks that nothing is written while nothing happens.
func (o *oracle) idle(w *world, d time.Duration) {
	before := w.snapshot()
	quiet(d)
	o.nothingChanged(w, before, "in idle hours")
}

// nothingChanged checks that the operator has written nothing. What timers ask
// for may be written again, but must have no effect.
func (o *oracle) nothingChanged(w *world, before moment, when string) {
	if !slices.ContainsFunc(o.declaration.handlers, func(h handler) bool { return h.kind == "timer" && h.patch != "" }) {
		o.noWrites(w, before.requests, when)
	} else if now := w.snapshot(); !maps.Equal(now.versions, before.versions) {
		o.wrong("objects have changed %s: %v, before it %v", when, now.versions, before.versions)
	}
}

func (o *oracle) noWrites(w *world, before int, when string) {
	for _, r := range w.cluster.Requests()[before:] {
		if r.Write() && ofOperator(r) && r.Resource != "leases" && r.Resource != "clusterkopfpeerings" {
			o.wrong("a write %s: %s", when, describe(r))
		}
	}
}

// moment is what a cluster is like at some time.
type moment struct {
	requests int
	versions map[string]string // of objects, by uid
}

func (w *world) snapshot() moment {
	m := moment{len(w.cluster.Requests()), map[string]string{}}
	for _, obj := range w.cluster.List(w.t, resource, "") {
		m.versions[string(obj.GetUID())] = obj.GetResourceVersion()
	}
	return m
}

// restarted checks that a restart of the operator does nothing but resume.
func (o *oracle) restarted(w *world, p *process, before moment) {
	is := func(yes func(handler) bool) bool { return slices.ContainsFunc(o.declaration.handlers, yes) }
	resumes := is(func(h handler) bool { return h.on&gopf.Resume != 0 || h.patch == "flush" })
	if !resumes { // otherwise it may write that it is under way
		o.nothingChanged(w, before, "after a restart")
	}
	for _, obj := range w.cluster.List(w.t, resource, "") {
		for _, h := range o.declaration.handlers {
			if h.on&gopf.Resume == 0 || !h.filter.matches(obj.Object) {
				continue
			}
			ends := 0
			for _, k := range o.calls[string(obj.GetUID())] {
				if k.process == p && k.id == h.id && k.final {
					ends++
				}
			}
			if ends != 1 {
				o.wrong("%s has finished %d times for %s after a restart", h.id, ends, obj.GetName())
			}
		}
	}
}
