package handling_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
)

// The edits of a deletion handler go along with the removal of the finalizer.
func TestEditsThatGoWithTheFinalizerAreMadeAnewToo(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	op := newOperator()
	gopf.For[*Example](op, examples).OnDelete("delete_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		c.Patch.Edit(func(e *Example) { e.Spec.Items = append(e.Spec.Items, "ours") })
		return nil
	})
	struck := false
	s.start(op, func(_ int, w write) mishap {
		if !struck && strings.Contains(w.body, `{"op":"remove","path":"/metadata/finalizers`) {
			struck = true
			if err := s.tryPatch(examples, "x", fields{"spec": fields{"items": []string{"theirs"}}}); err != nil {
				t.Error(err)
			}
		}
		return ""
	})
	obj := finalizers(others...) // so that it can be looked at afterwards
	obj["spec"] = fields{"field": "a"}
	s.create(examples, "x", obj)
	s.waitHandled(examples, "x", "a")
	s.delete(examples, "x")
	after := s.waitFor(examples, "x", hasFinalizers(others...))
	if items, _, _ := unstructured.NestedStringSlice(after.Object, "spec", "items"); !slices.Equal(items, []string{"theirs", "ours"}) {
		t.Errorf("the items are %q, want theirs and ours", items)
	}
}

// What was to be written about an object must not go to another one, which has
// got its name meanwhile: neither the results, nor that it was handled.
func TestASuccessorOfTheSameNameIsHandledOnItsOwn(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{examples, plains} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after the successor was handled %v", plural(resource), late), func(t *testing.T) {
				t.Parallel()
				s, d := newSpace(t), &diary{}
				declare := func() *gopf.Operator {
					op := newOperator()
					gopf.For[*Example](op, resource).OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
						c.SetResult(map[string]string{"of": string(c.Object.UID)})
						d.add("create %s", c.Object.UID)
						return nil
					})
					return op
				}
				own := func(obj *unstructured.Unstructured) error {
					of, _, _ := unstructured.NestedString(obj.Object, "status", "create_fn", "of")
					if of != string(obj.GetUID()) || d.count("create "+of) == 0 {
						return fmt.Errorf("the result is of %q, want it of %q, for which handlers were called: %q", of, obj.GetUID(), d.all())
					}
					return nil
				}
				var struck atomic.Bool
				o := s.start(declare(), func(_ int, w write) mishap {
					if !late && w.what != "PATCH "+plural(resource)+"/x" {
						return "" // what says that it was handled, comes later
					}
					if struck.Swap(true) {
						if late {
							return ""
						}
						return refused // it is about to die
					}
					if err := s.replace(resource, "x", spec("a")); err != nil {
						t.Error(err)
					}
					if late {
						s.waitHandled(resource, "x", "a")
						return ""
					}
					return killedAfter
				})
				s.create(resource, "x", spec("a"))
				if !late {
					eventually(t, func() error {
						if !o.wire.isDead() {
							return fmt.Errorf("nothing was written")
						}
						return nil
					})
					o.stop()
					o = s.start(declare(), nil)
				}
				s.waitFor(resource, "x", own)
				o.staysQuiet(t, d)
				s.waitFor(resource, "x", own)
			})
		}
	}
}

// A handler that is never due as long as its object does not decode must not
// keep others from their turn, nor the operator busy.
func TestAnObjectThatDoesNotDecodeForOneHandlerIsHandledByTheOthers(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	op.Settings.Execution.DefaultBackoff = 30 * time.Second
	gopf.For[*Example](op, examples).OnCreate("typed", d.handler("typed"))
	op.Resource(examples).OnCreate("untyped", func(context.Context, *gopf.Change[gopf.Unstructured]) error {
		d.add("untyped")
		return nil
	})
	o := s.start(op, nil)
	s.create(examples, "x", fields{"spec": fields{"field": 42}})
	eventually(t, func() error {
		if n := len(o.log.with("Handler 'typed' is not called")); n > 50 {
			t.Fatalf("the operator spins: %d attempts", n)
		}
		if d.count("untyped") == 0 {
			return fmt.Errorf("the other handler was not called")
		}
		return nil
	})
	s.patch(examples, "x", spec("a"))
	s.waitHandled(examples, "x", "a")
	d.check(t, "untyped", "typed create a")
}

// Somebody may ask for a delayed handler while the echo of the operator's own
// write is still on its way.
func TestAHandlerCanBeWokenAsSoonAsItWaits(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.add("create #%d", c.Retry)
		if c.Retry == 0 {
			return gopf.Wait(time.Hour, "it is not there yet")
		}
		return nil
	})
	o := s.start(op, nil)
	o.wire.whenAnswered(func(write) { x.Wake(s.name, "x") })
	s.create(examples, "x", spec("a"))
	d.waitFor(t, "create #1")
	s.waitHandled(examples, "x", "a")
	d.check(t, "create #0", "create #1")
}

// The alarm of a delayed handler may come while echoes of the operator's own
// writes are waiting for a slow event handler.
func TestADelayedHandlerIsNotForgottenWhileEventHandlersAreBusy(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnEvent("event_fn", func(context.Context, *gopf.Event[*Example]) error {
		time.Sleep(time.Second) // it is slow
		return nil
	})
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.add("create #%d", c.Retry)
		if c.Retry == 0 {
			c.Patch.Status(map[string]string{"phase": "waiting"}) // so that there are two echoes
			return gopf.Wait(700*time.Millisecond, "it is not there yet")
		}
		return nil
	})
	s.start(op, nil)
	s.create(examples, "x", spec("a"))
	d.waitFor(t, "create #1")
}

// What event handlers ask for on an echo of the operator's own writes has
// nothing to do with what else is to be done later.
func TestADelayedHandlerIsNotForgottenWhenAnEventHandlerWrites(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnEvent("event_fn", func(_ context.Context, e *gopf.Event[*Example]) error {
		e.Patch.Label("seen", "yes")
		return nil
	})
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.add("create #%d", c.Retry)
		if c.Retry == 0 {
			return gopf.Wait(time.Second, "it is not there yet")
		}
		return nil
	})
	s.start(op, nil)
	s.create(examples, "x", spec("a"))
	d.waitFor(t, "create #1")
}

// What event handlers ask for while the object pauses after an error is to be
// written after the pause.
func TestWhatEventHandlersAskForSurvivesErrors(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	op := newOperator()
	op.Settings.Networking.ErrorBackoffs = nil
	op.Settings.Queueing.ErrorDelays = []time.Duration{time.Second}
	x := gopf.For[*Example](op, examples)
	var once sync.Once
	x.OnEvent("event_fn", func(_ context.Context, e *gopf.Event[*Example]) error {
		if phase, ok := e.Object.Status["phase"].(string); ok {
			once.Do(func() { e.Patch.Label("phase", phase) })
		}
		return nil
	})
	x.OnCreate("create_fn", (&diary{}).handler("create"))
	s.start(op, func(n int, _ write) mishap {
		if n > 1 {
			return ""
		}
		go func() { // while it pauses
			time.Sleep(300 * time.Millisecond)
			if err := s.tryPatch(examples, "x", fields{"status": fields{"phase": "Ready"}}, "status"); err != nil {
				t.Error(err)
			}
		}()
		return refused
	})
	s.create(examples, "x", spec("a"))
	s.waitFor(examples, "x", func(obj *unstructured.Unstructured) error {
		if obj.GetLabels()["phase"] != "Ready" {
			return fmt.Errorf("labels: %q", obj.GetLabels())
		}
		return nil
	})
}

// A handler may ask for what the cluster does not take. That is its own problem:
// the object must be deletable all the same.
func TestAChangeThatIsRefusedDoesNotKeepTheObjectFromBeingDeleted(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*gopf.Change[*Example]){
		"an invalid label":       func(c *gopf.Change[*Example]) { c.Patch.Label("what?", "no!") },
		"another name":           func(c *gopf.Change[*Example]) { c.Patch.Set("metadata.name", "y") },
		"a spec of a wrong type": func(c *gopf.Change[*Example]) { c.Patch.Set("spec", 42) },
		"an edit that panics":    func(c *gopf.Change[*Example]) { c.Patch.Edit(func(e *Example) { _ = e.Spec.Items[99] }) },
		"an edit to the invalid": func(c *gopf.Change[*Example]) { c.Patch.Edit(func(e *Example) { e.Labels["what?"] = "no!" }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			op := newOperator()
			x := gopf.For[*Example](op, examples)
			x.OnCreate("create_fn", func(ctx context.Context, c *gopf.Change[*Example]) error {
				ask(c)
				return d.handler("create")(ctx, c)
			})
			x.OnDelete("delete_fn", d.handler("delete"))
			o := s.start(op, nil)
			s.create(examples, "x", spec("a"))
			d.waitFor(t, "create create a")
			eventually(t, func() error {
				if len(o.log.with("Throttling")) == 0 {
					return fmt.Errorf("nobody was told")
				}
				return nil
			})
			s.delete(examples, "x")
			s.waitGone(examples, "x")
			if n := d.count("delete delete a"); n != 1 {
				t.Errorf("the deletion was handled %d times: %q", n, d.all())
			}
		})
	}
}
