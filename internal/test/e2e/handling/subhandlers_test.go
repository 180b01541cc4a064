package handling_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// withItems is an object with some things that sub-handlers are made for.
func withItems(items ...string) fields {
	return fields{"spec": fields{"field": "a", "items": items}}
}

const itemsHandled = `{"spec":{"field":"a","items":["one","two","three"]}}`

func TestSubHandlersAreDoneOneByOneWithResultsOfTheirOwn(t *testing.T) {
	t.Parallel()
	for how, end := range ends {
		t.Run(how+" in between", func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			declare := func(ready bool) *gopf.Operator {
				op := newOperator()
				gopf.For[*Example](op, examples).OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
					for _, item := range c.Object.Spec.Items {
						c.Sub(item, func(_ context.Context, c *gopf.Change[*Example]) error {
							if item == "two" && !ready {
								d.Add("two is not ready")
								return gopf.Wait(500*time.Millisecond, "two is not ready")
							}
							if item == "three" {
								c.Sub("deep", func(_ context.Context, c *gopf.Change[*Example]) error {
									d.Add("deep")
									c.SetResult("deep")
									return nil
								})
							}
							d.Add("%s", item)
							c.SetResult(map[string]string{"is": item})
							return nil
						})
					}
					c.Sub("never", d.handler("never"), gopf.If(false))
					c.SetResult("all done")
					return nil
				})
				return op
			}
			o := s.start(declare(false), nil)
			s.Create(examples, "x", withItems("one", "two", "three"))
			d.WaitFor(t, "deep")
			kit.Eventually(t, func() error {
				if r, _ := s.record("create_fn.three.deep"); !r.Success {
					return errors.New("the last one is not recorded")
				}
				return nil
			})
			end(o)
			o = s.start(declare(true), nil)
			checkStatus(t, s.waitFor(examples, "x", handled(itemsHandled)), fields{
				"create_fn": "all done", "create_fn/one": fields{"is": "one"}, "create_fn/two": fields{"is": "two"},
				"create_fn/three": fields{"is": "three"}, "create_fn/three/deep": "deep",
			})
			o.staysQuiet(t, d)
			got := slices.DeleteFunc(d.All(), func(line string) bool { return strings.Contains(line, "not ready") })
			slices.Sort(got)
			// The one around the deep one is called again until that is done.
			if got := slices.Compact(got); !slices.Equal(got, []string{"deep", "one", "three", "two"}) {
				t.Errorf("calls: %q", d.All())
			}
			if d.Count("one") != 1 || d.Count("two") != 1 || d.Count("deep") != 1 {
				t.Errorf("calls: %q", d.All())
			}
		})
	}
}

func TestSubHandlersRunAtTheSameTimeIfAskedTo(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	var waiting atomic.Int32
	all := make(chan struct{})
	gopf.For[*Example](op, examples).OnCreate("create_fn", func(ctx context.Context, c *gopf.Change[*Example]) error {
		for _, item := range c.Object.Spec.Items {
			c.Sub(item, func(ctx context.Context, c *gopf.Change[*Example]) error {
				if waiting.Add(1) == 3 {
					close(all)
				}
				select {
				case <-all:
				case <-time.After(kit.Patience):
					return errors.New("the others do not come")
				}
				c.Patch.Label(item, "yes")
				c.SetResult(item)
				return nil
			})
		}
		if err := c.RunSubs(ctx, gopf.InOrderOf(gopf.AllAtOnce), gopf.Parallel(3)); err != nil {
			return err
		}
		d.Add("all are done")
		return nil
	})
	o := s.start(op, nil)
	s.Create(examples, "x", withItems("one", "two", "three"))
	const base = `{"spec":{"field":"a","items":["one","two","three"]},"metadata":{"labels":{"one":"yes","three":"yes","two":"yes"}}}`
	obj := s.waitFor(examples, "x", handled(base))
	checkStatus(t, obj, fields{"create_fn/one": "one", "create_fn/two": "two", "create_fn/three": "three"})
	o.staysQuiet(t, d)
	// All of them in one turn; and the labels are a change in turn.
	o.wire.checkWrites(t, 0, "PATCH examples/x/status", "PATCH examples/x", "PATCH examples/x")
	d.Check(t, "all are done")
}

func TestSubHandlersOfDeletionsAreAwaited(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	gopf.For[*Example](op, examples).OnDelete("delete_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		for _, item := range c.Object.Spec.Items {
			c.Sub(item, func(_ context.Context, c *gopf.Change[*Example]) error {
				d.Add("%s #%d", item, c.Retry)
				switch {
				case item == "one" && c.Retry == 0:
					return fmt.Errorf("once more")
				case item == "two":
					return gopf.Permanent(errors.New("it cannot be done"))
				}
				return nil
			})
		}
		return nil
	})
	s.start(op, nil)
	s.Create(examples, "x", withItems("one", "two", "three"))
	s.waitFor(examples, "x", handled(itemsHandled))
	s.Delete(examples, "x")
	s.waitGone(examples, "x")
	d.Check(t, "one #0", "two #0", "three #0", "one #1")
}
