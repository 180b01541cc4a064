package handling_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

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
						d.Add("create %s", c.Object.UID)
						return nil
					})
					return op
				}
				own := func(obj *unstructured.Unstructured) error {
					of, _, _ := unstructured.NestedString(obj.Object, "status", "create_fn", "of")
					if of != string(obj.GetUID()) || d.Count("create "+of) == 0 {
						return fmt.Errorf("the result is of %q, want it of %q, for which handlers were called: %q", of, obj.GetUID(), d.All())
					}
					return handled(strings.TrimSpace(kopfBase("a")))(obj)
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
				s.Create(resource, "x", spec("a"))
				if !late {
					kit.Eventually(t, func() error {
						if !o.wire.isDead() {
							return fmt.Errorf("nothing was written")
						}
						return nil
					})
					o.Stop()
					o = s.start(declare(), nil)
				}
				s.waitFor(resource, "x", own)
				o.staysQuiet(t, d)
				s.waitFor(resource, "x", own)
			})
		}
	}
}
