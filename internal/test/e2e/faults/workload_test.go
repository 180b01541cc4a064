package faults_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// Patient is the Go type of the objects that are treated.
type Patient struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Field string `json:"field"`
	} `json:"spec"`
	Status map[string]any `json:"status,omitempty"`
}

// notes are what the handlers of an operator have seen.
type notes struct {
	index *gopf.IndexOf[string, string] // the field by name

	mu     sync.Mutex
	calls  map[string][]string // of handlers of changes, by object
	events map[string][]string // as "TYPE field", by object
}

func (n *notes) call(c *gopf.Change[*Patient], handler string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls[c.Object.Name] = append(n.calls[c.Object.Name], fmt.Sprintf("%s %s #%d", handler, c.Object.Spec.Field, c.Retry))
}

func (n *notes) event(e *gopf.WatchEvent[*Patient]) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events[e.Object.Name] = append(n.events[e.Object.Name], e.Type+" "+e.Object.Spec.Field)
}

// of are the calls about an object.
func (n *notes) of(name string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.calls[name])
}

// eventsOf are the events that were told about an object.
func (n *notes) eventsOf(name string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.events[name])
}

// indexed is what is in the index now.
func (n *notes) indexed() map[string]string { return maps.Collect(n.index.All()) }

// newOperator declares the workload: two handlers for creation, one with a result
// and one that fails once, one for updates and one for deletion, an index and a
// handler of events.
//
// What takes half a minute or more by default takes seconds here; what the
// pauses look like in between is as by default, but faster.
func newOperator() (*gopf.Operator, *notes) {
	op, n := gopf.New(), &notes{calls: map[string][]string{}, events: map[string][]string{}}
	op.Settings.Posting.Enabled = false
	op.Settings.Networking.RequestTimeout = 5 * time.Second
	op.Settings.Networking.ErrorDelays = tenths(1, 1, 2, 3, 5, 8, 13, 21)
	op.Settings.Queueing.ErrorDelays = tenths(1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610)
	op.Settings.Watching.InactivityTimeout = 5 * time.Second

	x := gopf.For[*Patient](op, "faults.gopf.dev/v1/"+patients)
	n.index = gopf.Index(x, "fields", func(_ context.Context, s *gopf.Subject[*Patient]) (map[string]string, error) {
		return map[string]string{s.Object.Name: s.Object.Spec.Field}, nil
	})
	x.OnEvent("look", func(_ context.Context, e *gopf.WatchEvent[*Patient]) error {
		n.event(e)
		return nil
	})
	x.OnCreate("create_a", func(_ context.Context, c *gopf.Change[*Patient]) error {
		n.call(c, "create_a")
		c.SetResult("made")
		return nil
	})
	x.OnCreate("create_b", func(_ context.Context, c *gopf.Change[*Patient]) error {
		n.call(c, "create_b")
		if c.Retry == 0 {
			return gopf.RetryAfter(200*time.Millisecond, errors.New("not yet"))
		}
		return nil
	})
	x.OnUpdate("update", func(_ context.Context, c *gopf.Change[*Patient]) error {
		n.call(c, "update")
		return nil
	})
	x.OnDelete("delete", func(_ context.Context, c *gopf.Change[*Patient]) error {
		n.call(c, "delete")
		return nil
	})
	return op, n
}

// hasty makes the operator wait for answers for a short time only. That is not for
// all tests, because busy machines take their time.
func hasty(op *gopf.Operator) { op.Settings.Networking.RequestTimeout = 2 * time.Second }

func tenths(ns ...int) (ds []time.Duration) {
	for _, n := range ns {
		ds = append(ds, time.Duration(n)*100*time.Millisecond)
	}
	return ds
}

// phase is a part of the lives of the objects.
type phase string

// The phases, in their order.
const (
	creation phase = "creation"
	updating phase = "updating"
	deletion phase = "deletion"
)

// calls are all that the handlers are to be called for up to the end of a phase.
func (p phase) calls() []string {
	calls := []string{"create_a v1 #0", "create_b v1 #0", "create_b v1 #1"}
	if p == updating || p == deletion {
		calls = append(calls, "update v2 #0")
	}
	if p == deletion {
		calls = append(calls, "delete v2 #0")
	}
	return calls
}

// names are those of the objects.
var names = []string{"x", "y", "z"}

// do makes the change that the phase is about, past the proxy.
func (s *space) do(p phase) {
	s.t.Helper()
	for _, name := range names {
		switch p {
		case creation:
			s.create(name, "v1")
		case updating:
			s.change(name, "v2")
		case deletion:
			s.delete(name)
		}
	}
}

// done tells what is missing at the end of a phase. The cluster is asked last, as
// it has other things to do.
func (s *space) done(p phase, n *notes) error {
	want := map[string]string{}
	for _, name := range names {
		if got := n.of(name); !slices.Equal(sorted(got), sorted(p.calls())) {
			return fmt.Errorf("%s: the calls are %q, want %q", name, got, p.calls())
		}
		if err := told(p, n.eventsOf(name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		switch p {
		case creation:
			want[name] = "v1"
		case updating:
			want[name] = "v2"
		}
	}
	if got := n.indexed(); !maps.Equal(got, want) {
		return fmt.Errorf("in the index is %v, want %v", got, want)
	}
	for _, name := range names {
		if err := s.doneOne(p, name); err != nil {
			return err
		}
	}
	return nil
}

// doneOne looks at one object.
func (s *space) doneOne(p phase, name string) error {
	obj := s.get(name)
	if p == deletion {
		if obj != nil {
			return fmt.Errorf("%s is still there, with finalizers %q", name, obj.Finalizers)
		}
		return nil
	}
	field := map[phase]string{creation: "v1", updating: "v2"}[p]
	base := map[string]string{lastHandled: `{"spec":{"field":"` + field + `"}}` + "\n"}
	if obj != nil && strings.HasPrefix(obj.Annotations[bound], string(obj.UID)+".") {
		base[bound] = obj.Annotations[bound]
	}
	switch {
	case obj == nil:
		return fmt.Errorf("%s is gone", name)
	case !maps.Equal(obj.Annotations, base):
		return fmt.Errorf("%s: the annotations are %q", name, obj.Annotations)
	case obj.Status["create_a"] != "made":
		return fmt.Errorf("%s: the status is %v", name, obj.Status)
	case !slices.Equal(obj.Finalizers, []string{finalizer}):
		return fmt.Errorf("%s: the finalizers are %q", name, obj.Finalizers)
	}
	return nil
}

// told checks that a handler of events knows of the last thing that has happened.
func told(p phase, events []string) error {
	field := map[phase]string{creation: "v1", updating: "v2"}[p]
	seen := slices.ContainsFunc(events, func(e string) bool {
		if p == deletion {
			return e[:min(len(e), 7)] == "DELETED"
		}
		return e == "ADDED "+field || e == "MODIFIED "+field || e == " "+field
	})
	if !seen {
		return fmt.Errorf("of the %s only %q was told", p, events)
	}
	return nil
}

func sorted(of []string) []string {
	of = slices.Clone(of)
	slices.Sort(of)
	return of
}

// live lets the objects live through a fault that strikes in each phase. It
// measures how long after the fault's end all is done.
func (o *operator) live(f fault) {
	t := o.t
	t.Helper()
	for _, p := range []phase{creation, updating, deletion} {
		if f.begin != nil {
			f.begin(o.proxy)
		}
		o.space.do(p)
		if f.lasts > 0 {
			time.Sleep(f.lasts)
			o.checkAlive(p)
			f.end(o.proxy)
		}
		limit := f.within
		if limit == 0 {
			limit = soon
		}
		ended := time.Now()
		if err := o.settles(p, limit); err != nil {
			t.Fatalf("%s: not within %v of the fault's end: %v", p, limit, err)
		}
		t.Logf("%s: done %.1f s after the fault's end", p, time.Since(ended).Seconds())
		o.checkWell(p)
	}
	o.checkQuiet()
	if idle := o.proxy.ledger.idle(); len(idle) > 0 && !f.wild {
		t.Errorf("writes that have changed nothing: %q", idle)
	}
	if !f.wild {
		o.proxy.checkStruck(t)
	}
	if f.seen != "" && !o.Log.Has(f.seen) {
		t.Errorf("nothing in the log says %q", f.seen)
	}
}

// soon is how long recovery from a fault may take on a machine that has much else
// to do. It usually is a second or two, as the log of the test tells.
const soon = 30 * time.Second

// fault is what happens in each phase.
type fault struct {
	begin func(*proxy)  // just before the change
	lasts time.Duration // 0 for faults that end by themselves
	end   func(*proxy)
	// within is how long after its end recovery may take; 0 is soon.
	within time.Duration
	seen   string // what the log must tell
	// wild is a fault by chance: it may strike nothing, and writes may be applied
	// after they were given up, so that they are repeated in vain.
	wild bool
}

// settles waits until all of a phase is done.
func (o *operator) settles(p phase, limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		err := o.space.done(p, o.notes)
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// checkAlive checks that the operator does not ask for a restart, as it would help
// against none of the faults.
func (o *operator) checkAlive(p phase) {
	o.t.Helper()
	select {
	case <-o.Ended:
		o.t.Fatalf("%s: the operator has ended", p)
	default:
	}
	if err := o.health("livez"); err != nil {
		o.t.Errorf("%s: %v", p, err)
	}
}

// checkWell checks that the operator says itself that it is well again, after the
// recovery from a fault.
func (o *operator) checkWell(p phase) {
	o.t.Helper()
	o.checkAlive(p)
	kit.Eventually(o.t, func() error { return o.health("readyz") })
}

// checkQuiet checks that nothing more happens when all is done.
func (o *operator) checkQuiet() {
	o.t.Helper()
	before := len(o.proxy.ledger.all())
	time.Sleep(calm)
	if now := o.proxy.ledger.all(); len(now) > before {
		o.t.Errorf("it goes on writing: %q", now[before:])
	}
	if err := o.space.done(deletion, o.notes); err != nil {
		o.t.Errorf("it did not stay as it was: %v", err)
	}
}

// calm is how long nothing may happen.
const calm = 500 * time.Millisecond

// TestNoFault shows that the objects live well without.
func TestNoFault(t *testing.T) {
	t.Parallel()
	treat(t, fault{})
}
