package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	metalabels "k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// outlookObjects is the number of compared states. GOPF_OUTLOOK_OBJECTS overrides it.
const outlookObjects = 3000

// TestTheOutlookNeverContradictsTheEngine compares the outlook on random objects with what
// a pass of the engine then does with them: the handlers that it calls, the finalizer, and
// whether it writes, and the daemons and timers that it starts. The objects go through random histories: clients change them, handlers
// end with random outcomes, and processes restart.
func TestTheOutlookNeverContradictsTheEngine(t *testing.T) {
	count, seen := outlookCount(t), map[string]int{}
	storages := someStorages()
	names := slices.Sorted(maps.Keys(storages))
	for seed := uint64(0); count > 0; seed++ {
		synctest.Test(t, func(t *testing.T) {
			w := &outlookWorld{T: t, rnd: rand.New(rand.NewPCG(seed, 7)), seen: seen, seed: seed}
			count -= w.live(storages[names[int(seed)%len(names)]])
		})
		if t.Failed() {
			return
		}
	}
	for _, want := range []string{"next nothing", "next call", "next wait", "next finish", "next addFinalizer", "next removeFinalizer", "next tidy", "next unmatched", "next elsewhere", "next paused",
		"phase due", "phase delayed", "phase succeeded", "phase failed", "phase exhausted", "phase unmatched", "phase blocked", "settled",
		"background matched", "background unmatched", "background blocked",
		"missed reason", "missed change", "missed oldValue", "missed newValue", "missed value", "missed selector", "missed label", "missed annotation", "missed field", "missed function",
		"reason create", "reason update", "reason delete", "reason resume", "reason noop", "reason free"} {
		if seen[want] == 0 {
			t.Errorf("the random objects never had %q; the test compares too little", want)
		}
	}
	t.Log(seen)
}

// outlookCount returns the number of compared states.
func outlookCount(t *testing.T) int {
	text := os.Getenv("GOPF_OUTLOOK_OBJECTS")
	if text == "" {
		return outlookObjects
	}
	count, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// outlookWorld is one object with its operator.
type outlookWorld struct {
	*testing.T
	rnd    *rand.Rand
	seed   uint64
	seen   map[string]int
	k      *Processor
	calls  []string
	starts []string // of daemons and timers
	fields map[string]any
	age    int
}

func (w *outlookWorld) chance(n int) bool { return w.rnd.IntN(n) == 0 }

func pickOne[T any](w *outlookWorld, of ...T) T { return of[w.rnd.IntN(len(of))] }

// live runs the history of one object, and returns the number of compared states.
func (w *outlookWorld) live(set func(*Config)) (compared int) {
	w.k = newKind(newCluster(), nil)
	w.k.Resource.Subresources = pickOne(w, nil, []string{"status"})
	set(&w.k.Config)
	for i := range 1 + w.rnd.IntN(5) {
		w.k.Handlers = append(w.k.Handlers, w.handler(i))
	}
	w.k.Fields = w.k.Handlers.Fields()
	if w.chance(2) {
		config := daemon.Config{Clock: alarm.New((*daemon.Task).Ring), Wake: func(string) {}}
		for i := range 1 + w.rnd.IntN(3) {
			config.Specs = append(config.Specs, w.background(i))
		}
		w.k.Daemons = daemon.NewSet(config)
	}
	if w.chance(12) {
		w.k.HandedOver = func(b *object.Body) bool { return b.Labels()["tier"] == "b" }
	}
	w.fields = map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "n", "uid": "u" + fmt.Sprint(w.seed%2), "finalizers": pickOne(w, []any{}, []any{"other"})},
	}
	for range 25 {
		for range w.rnd.IntN(3) {
			w.edit()
		}
		next := w.compare()
		compared++
		if next == NextSend || next == NextRemoveFinalizer && w.deleting() {
			break
		}
		time.Sleep(pickOne(w, 0, time.Second, time.Minute, time.Hour))
	}
	return compared
}

func (w *outlookWorld) deleting() bool {
	return w.fields["metadata"].(map[string]any)["deletionTimestamp"] != nil
}

// matcher returns a random matcher of short texts.
func (w *outlookWorld) matcher() handler.Matcher {
	return pickOne(w, handler.Present, handler.Absent, handler.Any, handler.Equal("a"), handler.Equal("b"), handler.Equal("a"))
}

// background returns a random daemon or timer. Its first call never comes; the engine asks
// for the delay when it starts it.
func (w *outlookWorld) background(i int) *daemon.Spec {
	h := &handler.Handler{ID: "d" + strconv.Itoa(i), Mandatory: w.chance(3)}
	w.filters(h)
	return &daemon.Spec{Handler: h, Timer: w.chance(2), Interval: time.Hour, InitialDelay: func(*handler.Request) time.Duration {
		w.starts = append(w.starts, h.ID)
		return 1000 * time.Hour
	}}
}

// filters adds random filters on the current object.
func (w *outlookWorld) filters(h *handler.Handler) {
	if w.chance(4) {
		h.Criteria.Labels = []handler.Key{{Name: "tier", Match: w.matcher()}}
	}
	if w.chance(6) {
		h.Criteria.Annotations = []handler.Key{{Name: "note", Match: w.matcher()}}
	}
	if w.chance(6) {
		h.Criteria.Fields = []handler.Field{{Path: []string{"spec", pickOne(w, "x", "y")}, Match: w.matcher()}}
	}
	if w.chance(10) {
		h.Criteria.Selector, _ = metalabels.Parse("tier!=b")
	}
	if w.chance(8) {
		h.When = []func(*handler.Request) bool{func(r *handler.Request) bool { return r.Body.Labels()["tier"] != "a" }}
	}
}

// handler returns a random handler with random outcomes.
func (w *outlookWorld) handler(i int) *handler.Handler {
	h := &handler.Handler{ID: "h" + strconv.Itoa(i), Reasons: map[cause.Reason]bool{}, Deleted: w.chance(2)}
	for range 1 + w.rnd.IntN(3) {
		h.Reasons[pickOne(w, cause.Create, cause.Update, cause.Update, cause.Delete, cause.Resume)] = true
	}
	h.Mandatory = h.Reasons[cause.Delete] && !w.chance(4)
	w.filters(h)
	if w.chance(3) {
		h.Change = &handler.Change{Path: []string{"spec", pickOne(w, "x", "y", "z")}}
		h.AnyMove = w.chance(4)
		switch w.rnd.IntN(4) {
		case 0:
			h.Change.Value = w.matcher()
		case 1:
			h.Change.Old, h.Change.New = w.matcher(), w.matcher()
		}
	}
	if w.chance(5) {
		h.Limits.Retries = handler.Some(w.rnd.IntN(3))
	}
	if w.chance(5) {
		h.Limits.Timeout = handler.Some(time.Minute)
	}
	if i > 0 && w.chance(15) {
		h.ID = "h0" // two handlers share a record
	}
	h.Call = func(_ context.Context, r *handler.Request) error {
		w.calls = append(w.calls, fmt.Sprintf("%p", h))
		if w.chance(4) {
			r.Patch.Set(pickOne[any](w, "a", "b"), "status", pickOne(w, "m", "n"))
		}
		if w.chance(10) {
			r.Patch.Set(pickOne[any](w, "a", "b"), "spec", "x")
		}
		switch w.rnd.IntN(6) {
		case 0:
			return &handler.PermanentError{Err: errors.New("no")}
		case 1:
			return &handler.TemporaryError{Err: errors.New("later"), Delay: handler.Some(pickOne(w, 0, time.Second, time.Minute))}
		case 2:
			return errors.New("oops")
		}
		return nil
	}
	return h
}

// edit changes the object as other clients do.
func (w *outlookWorld) edit() {
	metadata := w.fields["metadata"].(map[string]any)
	set := func(at map[string]any, under, key string) {
		values, _ := at[under].(map[string]any)
		if values == nil {
			values = map[string]any{}
			at[under] = values
		}
		if values[key] = any(pickOne(w, "a", "b", "c")); w.chance(4) {
			delete(values, key)
		}
	}
	switch w.rnd.IntN(10) {
	case 0, 1, 2:
		set(w.fields, "spec", pickOne(w, "x", "y", "z"))
	case 3:
		set(metadata, "labels", "tier")
	case 4:
		set(metadata, "annotations", pickOne(w, "note", "note", "kopf.zalando.org/h0", "my.op/last-handled-configuration", "kopf.zalando.org/last-handled-configuration"))
	case 5:
		set(w.fields, "status", "z")
	case 6:
		if w.chance(4) {
			metadata["deletionTimestamp"] = "2000-01-01T00:00:00Z"
		}
	case 7:
		if w.chance(5) {
			delete(metadata, "annotations")
		}
	case 8:
		if w.chance(5) {
			metadata["finalizers"] = []any{}
		}
	case 9:
		annotations, _ := metadata["annotations"].(map[string]any)
		if key := pickOne(w, "gopf.dev/pause", "my.op/pause"); annotations[key] != nil {
			delete(annotations, key)
		} else if annotations != nil && w.chance(3) {
			annotations[key] = pickOne(w, "true", "until "+time.Now().Add(time.Minute).Format(time.RFC3339), "until never")
		}
	}
}

// compare compares the outlook with the next pass of the engine, and writes the changes of
// the pass.
func (w *outlookWorld) compare() Next {
	w.age++
	metadata := w.fields["metadata"].(map[string]any)
	metadata["resourceVersion"] = strconv.Itoa(w.age)
	body, err := object.FromMap(jsonvalue.Clone(w.fields).(map[string]any))
	if err != nil {
		w.Fatal(err)
	}
	restarted := w.chance(2)
	o, err := w.k.Outlook(w.Context(), body.Undecoded(), restarted)
	if err != nil {
		w.Fatal(err)
	}
	m := memoryOf(body.Identity, restarted)
	w.calls, w.starts = nil, nil
	settled := w.k.settled(m, body)
	c, err := w.k.prepare(w.Context(), m, body, Occasion{}, &[]execute.Part{}, &cost{})
	if err != nil {
		w.Fatal(err)
	}
	w.judge(o, c, settled, body)
	w.judgeBackground(o, body)
	if started := m.daemons.Load(); started != nil {
		started.Forget(daemon.ErrUnmatched)
	}
	w.write(c)
	return o.Next
}

// judge fails the test if the outlook does not describe what the pass did.
func (w *outlookWorld) judge(o *Outlook, c *change, settled bool, body *object.Body) {
	var due []string
	for _, f := range o.Changes {
		w.seen["phase "+string(f.Phase)]++
		if f.Phase == Unmatched && f.Miss.Criterion != handler.Met {
			w.seen["missed "+f.Miss.Criterion.String()]++
		}
		if f.Phase == Due {
			due = append(due, fmt.Sprintf("%p", f.Handler))
		}
		if f.Phase == Unmatched && f.Why == "" {
			w.Errorf("no reason for %s", f.Handler.ID)
		}
	}
	w.seen["next "+string(o.Next)]++
	w.seen["reason "+string(o.Reason)]++
	wrong := func(format string, args ...any) {
		w.Errorf("seed %d, state %d: "+format+"\noutlook %+v\nchange: notes %v, finalizer %+v, due %v, %d parts\n%s",
			append(append([]any{w.seed, w.age}, args...), o, c.notes.Fields(), c.finalizer, c.due, len(c.parts), body.Raw())...)
	}
	idle := c.notes.Empty() && len(c.parts) == 0 && !c.finalizer.Add && !c.finalizer.Remove
	switch {
	case !slices.Equal(due, w.calls):
		wrong("the outlook has %v as due, the engine called %v", due, w.calls)
	case len(o.Changes) != len(w.k.Handlers):
		wrong("the outlook has %d of %d handlers", len(o.Changes), len(w.k.Handlers))
	case len(due) > 0 && o.Next != NextCall:
		wrong("handlers are due")
	case c.finalizer.Add != (o.Next == NextAddFinalizer):
		wrong("adding the finalizer")
	case o.Next == NextRemoveFinalizer && !c.finalizer.Remove, o.Next != NextRemoveFinalizer && o.Next != NextCall && c.finalizer.Remove:
		wrong("removing the finalizer")
	case (o.Next == NextNothing || o.Next == NextUnmatched || o.Next == NextElsewhere) && (!idle || c.due.Set):
		wrong("the engine has work")
	case o.Next == NextWait && c.due != w.least(o):
		wrong("the engine waits %v, the outlook %v", c.due, w.least(o))
	case o.Next == NextPaused && (!idle || c.due.Set == o.Pause.Until.IsZero()):
		wrong("a paused object")
	case o.Next == NextTidy && idle, o.Next == NextSend && !c.acted:
		wrong("the engine writes nothing")
	case o.Guarded != slices.Contains(body.Finalizers(), w.k.Config.Finalizer):
		wrong("the finalizer is there or not")
	}
	if settled {
		w.seen["settled"]++
		if len(due) > 0 || o.Next != NextNothing && o.Next != NextFinish && o.Next != NextUnmatched || !idle {
			wrong("a settled object")
		}
	}
}

// judgeBackground fails the test if the outlook has other daemons and timers than the pass
// started.
func (w *outlookWorld) judgeBackground(o *Outlook, body *object.Body) {
	var matched []string
	for _, f := range o.Background {
		w.seen["background "+string(f.Phase)]++
		if f.Phase == Matched {
			matched = append(matched, f.Handler.ID)
		}
		if f.Phase != Matched && f.Why == "" {
			w.Errorf("no reason for %s", f.Handler.ID)
		}
	}
	slices.Sort(w.starts) // their order is not part of the outlook
	if !slices.Equal(matched, w.starts) {
		w.Errorf("seed %d, state %d: the outlook has the daemons %v, the engine started %v\n%s", w.seed, w.age, matched, w.starts, body.Raw())
	}
}

// least returns the shortest delay of the outlook.
func (w *outlookWorld) least(o *Outlook) (least delay) {
	for _, f := range o.Changes {
		if f.Phase == Delayed {
			least = sooner(least, handler.Some(time.Until(f.Until)))
		}
	}
	return least
}

// write puts the changes of a pass on the object.
func (w *outlookWorld) write(c *change) {
	patch.Apply(w.fields, jsonvalue.Clone(c.asked().Fields()).(map[string]any))
	patch.Apply(w.fields, jsonvalue.Clone(c.notes.Fields()).(map[string]any))
	metadata := w.fields["metadata"].(map[string]any)
	finalizers, _ := metadata["finalizers"].([]any)
	finalizers = slices.DeleteFunc(slices.Clone(finalizers), func(f any) bool { return f == w.k.Config.Finalizer && c.finalizer.Remove })
	if c.finalizer.Add {
		finalizers = append(finalizers, w.k.Config.Finalizer)
	}
	metadata["finalizers"] = finalizers
}
