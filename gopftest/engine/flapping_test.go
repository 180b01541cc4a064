package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// A client changes the label of an object at any rate while its handler runs.
func TestAnObjectThatLeavesAndReturnsManyTimesIsReadOnce(t *testing.T) {
	for name, end := range map[string]struct {
		tiers []any // at the end
		reads int
		calls []string
	}{
		"it stays selected": {nil, 0, []string{"create create a"}},
		"it leaves":         {[]any{nil}, 1, []string{"create create a"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := gopf.New()
				x := gopf.For[*Example](op, resource).Select("tier=prod")
				x.OnCreate("create", func(ctx context.Context, ch *gopf.Change[*Example]) error {
					time.Sleep(time.Hour)
					return diary.handler("create")(ctx, ch)
				})
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				createSelected(t, c)
				before := reads(c)
				for range 200 {
					setTier(t, c, nil)
					setTier(t, c, "prod")
					settle()
				}
				for _, tier := range end.tiers {
					setTier(t, c, tier)
				}
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				if n := reads(c) - before; n != end.reads {
					t.Errorf("%d reads, want %d", n, end.reads)
				}
				if got := diary.all(); !slices.Equal(got, end.calls) {
					t.Errorf("got the calls %q", got)
				}
			})
		})
	}
}

// The end of the old object must not be lost, although the object seemed to leave and to return
// before.
func TestADeletionAfterManyReturnsIsNoticed(t *testing.T) {
	for name, recreated := range map[string]bool{"it is deleted": false, "it is created again": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := gopf.New()
				x := gopf.For[*Example](op, resource).Select("tier=prod")
				x.OnCreate("create", func(_ context.Context, ch *gopf.Change[*Example]) error {
					diary.add("create %s", ch.Object.Spec.Field)
					if ch.Object.Spec.Field == "a" {
						time.Sleep(time.Hour)
					}
					return nil
				})
				x.Daemon("run", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
					field := d.Object.Spec.Field
					<-ctx.Done()
					diary.add("daemon of %s ends: %v", field, context.Cause(ctx))
					return nil
				}, gopf.Optional())
				index := gopf.Index(x, "fields", func(_ context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
					return map[string]string{s.Object.Spec.Field: s.Object.Name}, nil
				})
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				createSelected(t, c)
				for range 20 {
					setTier(t, c, nil)
					setTier(t, c, "prod")
				}
				c.Delete(t, resource, "default", "x")
				if recreated {
					o := example("x", "b")
					o.SetLabels(map[string]string{"tier": "prod"})
					c.Create(t, o)
					setTier(t, c, nil)
					setTier(t, c, "prod")
				}
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				want, indexed := []string{"create a", "daemon of a ends: " + gopf.ErrDeleted.Error()}, 0
				if recreated {
					want, indexed = append(want, "create b"), 1
				}
				if got := diary.all(); !sameLines(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
				if index.Len() != indexed {
					t.Errorf("%d objects in the index, want %d", index.Len(), indexed)
				}
			})
		})
	}
}
