package model_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// of finds the declared handler of a kind of which there is one at the most.
func (d declaration) of(kind string) (handler, bool) {
	i := slices.IndexFunc(d.handlers, func(h handler) bool { return h.kind == kind })
	if i < 0 {
		return handler{}, false
	}
	return d.handlers[i], true
}

// serving are the processes that run now.
func (w *world) serving() []*process {
	w.mu.Lock()
	defer w.mu.Unlock()
	var alive []*process
	for _, p := range w.processes {
		select {
		case <-p.done:
		case <-p.died:
		default:
			alive = append(alive, p)
		}
	}
	return alive
}

// leader is the identity of the replica that has the lease.
func (w *world) leader() string {
	lease, there := w.cluster.Lookup(w.t, "coordination.k8s.io/v1/leases", "default", leaseName)
	if !there {
		return ""
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder
}

// indexIsComplete checks that an index has the objects that match, by their
// present values.
func (o *oracle) indexIsComplete(w *world, objects map[string]*unstructured.Unstructured) {
	h, declared := o.declaration.of("index")
	if !declared {
		return
	}
	want := []string{}
	for _, obj := range objects {
		if h.filter.matches(obj.Object) {
			want = append(want, fmt.Sprintf("%v=%s/%s", asMap(obj.Object["spec"])["a"], obj.GetNamespace(), obj.GetName()))
		}
	}
	slices.Sort(want)
	for _, p := range w.serving() {
		got := []string{}
		for k, v := range p.index.All() {
			got = append(got, k+"="+v)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			o.wrong("the index of process %d has %q, want %q", p.n, got, want)
		}
	}
}

// daemonsRun checks that there is one daemon for each object that matches, and
// none for others. Only one of the processes has them.
func (o *oracle) daemonsRun(w *world, objects map[string]*unstructured.Unstructured) {
	h, declared := o.declaration.of("daemon")
	if !declared {
		return
	}
	o.mu.Lock()
	running := map[string]int{}
	for _, p := range w.serving() {
		for at, n := range o.daemons {
			var of int
			var uid string
			if _, _ = fmt.Sscanf(at, "%d %s", &of, &uid); of == p.n && n > 0 {
				running[uid] += n
			}
		}
	}
	o.mu.Unlock()
	for uid, obj := range objects {
		want := 0
		if h.filter.matches(obj.Object) && obj.GetDeletionTimestamp() == nil {
			want = 1
		}
		if running[uid] != want {
			o.wrong("%d daemons run for %s, want %d", running[uid], obj.GetName(), want)
		}
		delete(running, uid)
	}
	if len(running) > 0 {
		o.wrong("daemons run for objects that are gone: %v", running)
	}
}

// timersRan checks that timers were called within the time, for objects that
// match and no others.
func (o *oracle) timersRan(w *world, since time.Time) {
	h, declared := o.declaration.of("timer")
	if !declared {
		return
	}
	for _, obj := range w.cluster.List(w.t, resource, "") {
		n := 0
		o.mu.Lock()
		for _, p := range w.serving() {
			for _, at := range o.ticks[daemonKey(p, string(obj.GetUID()))] {
				if at.After(since) {
					n++
				}
			}
		}
		o.mu.Unlock()
		expected := 0
		if h.filter.matches(obj.Object) {
			expected = int(time.Since(since) / h.delay)
		}
		if n < expected-1 || n > expected+1 || expected == 0 && n > 0 {
			o.wrong("the timer of %s was called %d times in %s, want %d", obj.GetName(), n, time.Since(since), expected)
		}
	}
}

// eventsAreComplete checks that the last event of each object was told.
func (o *oracle) eventsAreComplete(w *world, objects map[string]*unstructured.Unstructured) {
	h, declared := o.declaration.of("event")
	if !declared {
		return
	}
	for _, p := range w.serving() {
		if w.election && w.leader() != p.identity() {
			continue
		}
		o.mu.Lock()
		told := o.events[fmt.Sprint(p.n)]
		o.mu.Unlock()
		for uid, last := range told {
			known := last.term == p.term() // a replica forgets all objects with the lease
			if known && objects[uid] == nil && last.kind != "DELETED" && o.alwaysMatched(uid, h.filter) && !w.moving {
				o.wrong("process %d was not told of the deletion of %s (%s)", p.n, last.name, uid)
			}
		}
		for uid, obj := range objects {
			if version, _ := strconv.ParseInt(obj.GetResourceVersion(), 10, 64); h.filter.matches(obj.Object) && told[uid].version != version {
				o.wrong("the last event of %s in process %d has version %d, want %d", obj.GetName(), p.n, told[uid].version, version)
			}
		}
	}
}
