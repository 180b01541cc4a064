package model_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"gopf.dev/gopf"
)

// declaration is the complete declaration of one operator.
type declaration struct {
	handlers    []handler
	lifecycle   string
	storage     string
	workerLimit int
	maxWorkers  int
	statusSub   bool // the kind has a status subresource
	scanning    bool // the operator discovers resources continuously
}

// handler is one declared handler. Its behavior depends only on this declaration, the object,
// and the number of attempts.
type handler struct {
	id       string
	kind     string // change, field, event, daemon, timer, index
	on       gopf.Reason
	field    string // of the spec, for the kind field
	filter   filter
	optional bool
	formerly string
	added    bool          // it did not exist in the version before
	fails    int           // attempts that fail before the last one
	how      string        // how they fail: retry, wait, error, permanent
	retries  int           // maximum number of attempts; 0 means no limit
	delay    time.Duration // between attempts; the interval of a timer
	work     time.Duration // duration of a call
	result   bool
	patch    string // where it writes: status, label, annotation, spec, edit, twice, or nowhere
	subs     []handler
	parallel int
}

// filter restricts a handler to some objects.
type filter struct {
	by    string // label, field, when; empty means all objects
	value string
}

func randomDeclaration(r *rand.Rand, th theme) declaration {
	d := declaration{
		lifecycle:   pick(r, []string{"asap", "asap", "all", "one", "random", "shuffled"}),
		storage:     pick(r, []string{"annotations", "annotations", "annotations", "status", "smart", "elsewhere", "state", "moving"}),
		workerLimit: pick(r, th.workers),
		maxWorkers:  pick(r, []int{0, 0, 0, 1, 3}),
		statusSub:   chance(r, 70),
		scanning:    chance(r, 20),
	}
	for i := range 1 + r.IntN(3) {
		d.handlers = append(d.handlers, randomChange(r, th, fmt.Sprint("h", i)))
	}
	if chance(r, 30) {
		h := randomChange(r, th, "f")
		h.kind, h.field, h.filter = "field", pick(r, []string{"a", "b", "big"}), filter{}
		h.on = gopf.Create | gopf.Update
		d.handlers = append(d.handlers, h)
	}
	if chance(r, th.deletion) {
		h := randomChange(r, th, "del")
		h.on, h.optional, h.subs = gopf.Delete, chance(r, 10), nil
		d.handlers = append(d.handlers, h)
	}
	if chance(r, 20) {
		h := randomChange(r, th, "res")
		h.on = gopf.Resume
		if h.subs = nil; h.patch != "" {
			h.patch = "status" // other changes would be updates
		}
		d.handlers = append(d.handlers, h)
	}
	for _, kind := range []string{"event", "daemon", "timer", "index"} {
		if chance(r, th.background) {
			d.handlers = append(d.handlers, randomBackground(r, kind))
		}
	}
	return d
}

var pauses = []time.Duration{time.Second, 10 * time.Second, time.Minute}

func randomChange(r *rand.Rand, th theme, id string) handler {
	h := handler{
		id: id, kind: "change", filter: randomFilter(r),
		on:     pick(r, []gopf.Reason{gopf.Create | gopf.Update, gopf.Create | gopf.Update, gopf.Create | gopf.Update, gopf.Create | gopf.Update | gopf.Resume, gopf.Create, gopf.Update}),
		how:    pick(r, []string{"retry", "retry", "wait", "error", "permanent"}),
		delay:  pick(r, pauses),
		result: chance(r, 30),
	}
	if chance(r, th.slow) {
		h.work = pick(r, []time.Duration{0, time.Second, 10 * time.Second, 30 * time.Second})
		h.fails = r.IntN(3)
	}
	if chance(r, 10) {
		h.retries = 1 + r.IntN(3)
	}
	if chance(r, 45) {
		h.patch = pick(r, []string{"status", "status", "label", "annotation", "spec", "edit", "twice"})
	}
	if chance(r, 20) {
		h.subs, h.parallel, h.retries = randomSubs(r, th, 2), pick(r, []int{0, 0, 2}), 0
	}
	return h
}

func randomSubs(r *rand.Rand, th theme, depth int) []handler {
	var subs []handler
	for i := range 1 + r.IntN(2) {
		s := randomChange(r, th, fmt.Sprint("s", i))
		s.subs, s.filter, s.retries = nil, filter{}, 0
		if depth > 1 && chance(r, 25) {
			s.subs = randomSubs(r, th, depth-1)
		}
		subs = append(subs, s)
	}
	return subs
}

func randomFilter(r *rand.Rand) filter {
	switch {
	case chance(r, 75):
		return filter{}
	case chance(r, 50):
		return filter{"label", pick(r, tiers[:2])}
	case chance(r, 50):
		return filter{"field", "x1"}
	}
	return filter{"when", "x1"}
}

func randomBackground(r *rand.Rand, kind string) handler {
	h := handler{id: kind, kind: kind, filter: randomFilter(r)}
	switch kind {
	case "daemon":
		h.optional = chance(r, 50)
		h.work = pick(r, []time.Duration{0, 0, time.Second, 10 * time.Second}) // from the signal to its end
		h.patch = pick(r, []string{"", "", "flush"})
	case "timer":
		h.optional = chance(r, 50)
		h.delay = pick(r, []time.Duration{5 * time.Minute, 20 * time.Minute})
		h.patch = pick(r, []string{"", "", "status"})
	}
	return h
}

// matches reports whether the handler matches the object.
func (f filter) matches(obj map[string]any) bool {
	metadata, spec := asMap(obj["metadata"]), asMap(obj["spec"])
	switch f.by {
	case "label":
		return asMap(metadata["labels"])["tier"] == f.value
	case "field":
		return spec["a"] == f.value
	case "when":
		return spec["a"] != f.value
	}
	return true
}

func (f filter) String() string {
	if f.by == "" {
		return ""
	}
	return fmt.Sprintf(" if %s is %s%s", map[string]string{"label": "tier", "field": "a", "when": "a"}[f.by],
		map[bool]string{true: "not "}[f.by == "when"], f.value)
}

func (h handler) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", h.kind, h.id)
	if h.on != 0 {
		fmt.Fprintf(&b, " on %s", h.on)
	}
	for _, part := range []struct {
		said bool
		text string
	}{
		{h.field != "", " of " + h.field}, {true, h.filter.String()}, {h.optional, " optional"}, {h.formerly != "", " formerly " + h.formerly},
		{h.fails > 0, fmt.Sprintf(" fails %d times (%s, %s)", h.fails, h.how, h.delay)}, {h.retries > 0, fmt.Sprint(" retries ", h.retries)},
		{h.kind == "timer", fmt.Sprint(" every ", h.delay)}, {h.work > 0, fmt.Sprint(" takes ", h.work)},
		{h.result, " result"}, {h.patch != "", " writes " + h.patch}, {h.parallel > 0, fmt.Sprint(" parallel ", h.parallel)},
	} {
		if part.said {
			b.WriteString(part.text)
		}
	}
	for _, s := range h.subs {
		b.WriteString(" [" + s.String() + "]")
	}
	return b.String()
}

func (d declaration) String() string {
	lines := []string{fmt.Sprintf("storage %s, lifecycle %s, workers %d/%d, status subresource %v",
		d.storage, d.lifecycle, d.workerLimit, d.maxWorkers, d.statusSub)}
	for _, h := range d.handlers {
		lines = append(lines, "  "+h.String())
	}
	return strings.Join(lines, "\n")
}
