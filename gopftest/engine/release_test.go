package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// With the state in the status as in annotations, the removal of the finalizer is the record of the deletion: nothing else is left on the
// object. If another finalizer keeps the object, its records are removed, too.
func TestWritesOfADeletion(t *testing.T) {
	for name, test := range map[string]struct {
		persistence func(*gopf.Operator)
		failures    int    // of the handler
		foreign     string // another finalizer
		writes      int    // during the deletion
	}{
		"annotations":                            {writes: 1},
		"annotations, after a retry":             {failures: 1, writes: 2},
		"annotations, with another finalizer":    {foreign: "example.com/other", writes: 1},
		"status":                                 {persistence: inStatus("things"), writes: 1},
		"status, after a retry":                  {persistence: inStatus("things"), failures: 1, writes: 2},
		"status, with another finalizer":         {persistence: inStatus("things"), foreign: "example.com/other", writes: 1},
		"status, with another one after a retry": {persistence: inStatus("things"), failures: 1, foreign: "example.com/other", writes: 4},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := gopf.New()
				if test.persistence != nil {
					test.persistence(op)
				}
				gopf.For[*Example](op, resource).OnDelete("delete", diary.failing("delete", test.failures, time.Second))
				runs(t, c, op, func() {
					x := example("x", "a")
					if test.foreign != "" {
						x.SetFinalizers([]string{test.foreign})
					}
					c.Create(t, x)
					time.Sleep(time.Minute)
					before := patches(c)
					c.Delete(t, resource, "default", "x")
					time.Sleep(time.Minute)
					if n := patches(c) - before; n != test.writes {
						t.Errorf("%d writes, want %d", n, test.writes)
					}
				})
				if n := len(diary.all()); n != test.failures+1 {
					t.Errorf("the handler was called %d times", n)
				}
				x, found := c.Lookup(t, resource, "default", "x")
				if test.foreign == "" {
					if found {
						t.Error("the object is still there")
					}
					return
				}
				records, _, _ := unstructured.NestedMap(x.Object, "status", "things", "progress")
				_, record := x.GetAnnotations()["kopf.zalando.org/delete"]
				if !slices.Equal(x.GetFinalizers(), []string{test.foreign}) || record || len(records) > 0 {
					t.Errorf("got %v", x.Object)
				}
			})
		})
	}
}

// The finalizer stays until a daemon has stopped. Meanwhile, the outcome of the handler is on
// the object, and a restart does not call it again.
func TestADeletionHandlerIsNotRepeatedWhileADaemonStops(t *testing.T) {
	for name, persistence := range map[string]func(*gopf.Operator){"annotations": func(*gopf.Operator) {}, "status": inStatus("things")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				build := func() *gopf.Operator {
					op := gopf.New()
					persistence(op)
					things := gopf.For[*Example](op, resource)
					things.OnDelete("delete", diary.failing("delete", 0, 0))
					things.Daemon("watch", func(ctx context.Context, _ *gopf.Daemon[*Example]) error {
						<-ctx.Done()
						time.Sleep(5 * time.Minute)
						return nil
					}, gopf.StopTimeout(time.Hour))
					return op
				}
				runs(t, c, build(), func() {
					c.Create(t, example("x", "a"))
					time.Sleep(time.Minute)
					c.Delete(t, resource, "default", "x")
				})
				runs(t, c, build(), func() { time.Sleep(20 * time.Minute) })
				if want := []string{"delete delete a #0"}; !slices.Equal(diary.all(), want) {
					t.Errorf("got %q, want %q", diary.all(), want)
				}
				if _, found := c.Lookup(t, resource, "default", "x"); found {
					t.Error("the object is still there")
				}
			})
		})
	}
}
