package engine_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/storage"
)

// countingBase counts the essences that the operator computes.
type countingBase struct {
	*storage.AnnotationBase
	essences *atomic.Int32
}

func (b countingBase) CleanObject(o storage.Object, essence map[string]any) {
	b.essences.Add(1)
	b.AnnotationBase.CleanObject(o, essence)
}

func TestARestartComputesNoEssenceOfAnUnchangedOwner(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var essences atomic.Int32
		start := func() (stop func()) {
			op := owning()
			op.Settings.Persistence.Base = countingBase{storage.NewAnnotationBase("examples.kopf.dev"), &essences}
			gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
				gopf.Want(r, childMap("one", "a"))
				return nil
			}, gopf.Owns[*corev1.ConfigMap]())
			stop = gopftest.Start(t, op, c, gopf.Log(quiet()))
			settle()
			return stop
		}
		c.Create(t, example("x", "a"))
		start()()
		essences.Store(0)
		start()()
		if got := essences.Load(); got != 0 {
			t.Errorf("the essence was computed %d times", got)
		}
	})
}

// The response to the operator's own write has the change, so no later event shows it as one.
func TestAChangeDuringACallIsReconciledWhateverPlacementTheStateHas(t *testing.T) {
	for name, placement := range map[string][]gopf.IdentityOption{"annotations": nil, "status": {gopf.StateInStatus("")}} {
		t.Run(name, func(t *testing.T) {
			owners(t, func(t *testing.T, c *gopftest.Cluster) {
				var seen calls
				op := gopf.New(gopf.Identity("examples.kopf.dev", placement...))
				gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
					seen.add("%s", r.Object.Spec.Field)
					if r.Object.Spec.Field == "a" {
						c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "b"}))
					}
					gopf.Want(r, childMap("one", r.Object.Spec.Field))
					return nil
				}, gopf.Owns[*corev1.ConfigMap]())
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				c.Create(t, example("x", "a"))
				settle()
				if got := seen.all(); !slices.Equal(got, []string{"a", "b"}) {
					t.Errorf("the handler was called for %v", got)
				}
			})
		})
	}
}
