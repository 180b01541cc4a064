package engine_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestTheStateOfAllObjectsMovesWithoutCallingHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		const objects = 7
		runs(t, c, plainOperator(&diary, nil), func() {
			for i := range objects {
				c.Create(t, example(fmt.Sprint("x", i), "a"))
			}
		})
		move := func(to string, dryRun bool, config func(*gopf.Operator)) string {
			t.Helper()
			var out bytes.Buffer
			op := plainOperator(&diary, config)
			if err := op.MoveState(t.Context(), to, dryRun, &out, gopf.Cluster(c.RESTConfig()), gopf.Log(quiet())); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		check := func(inStatus bool) {
			t.Helper()
			for _, obj := range c.List(t, resource, "default") {
				state, _, _ := unstructured.NestedMap(obj.Object, "status", "things")
				if (state["last-handled-configuration"] != nil) != inStatus || (len(obj.GetAnnotations()) == 0) != inStatus || state["moved"] != nil {
					t.Errorf("in the status %t: %v", inStatus, obj.Object)
				}
			}
		}
		before := patches(c)
		if out := move("status", true, inStatus("things")); !strings.Contains(out, "7 seen, 7 to move, 0 failed") || patches(c) != before {
			t.Errorf("a dry run printed %q and wrote %d times", out, patches(c)-before)
		}
		if out := move("status", false, inStatus("things")); !strings.Contains(out, "7 seen, 7 moved, 0 failed") {
			t.Errorf("printed %q", out)
		}
		check(true)
		if out := move("status", false, inStatus("things")); !strings.Contains(out, "7 seen, 0 moved, 0 failed") {
			t.Errorf("a repeated move printed %q", out)
		}
		runs(t, c, plainOperator(&diary, inStatus("things")), nil)
		move("annotations", false, inStatus("things"))
		check(false)
		runs(t, c, plainOperator(&diary, nil), func() { changeField(t, c, "x0", "b") })
		if got := diary.all(); len(got) != objects+1 || !slices.Contains(got, "update a->b") {
			t.Errorf("calls %q, want %d creations and one update", got, objects)
		}
	})
}

func TestAnInterruptedMoveContinues(t *testing.T) {
	for _, to := range []string{"status", "annotations"} {
		for at := 1; at <= 3; at++ {
			t.Run(fmt.Sprintf("to %s, after write %d", to, at), func(t *testing.T) {
				bubble(t, func(t *testing.T, c *gopftest.Cluster) {
					var diary calls
					annotations := func(op *gopf.Operator) { op.Settings.Persistence.FormerStatusKeys = []string{"things"} }
					from, into := annotations, inStatus("things")
					if to == "annotations" {
						from, into = into, from
					}
					half := func(config func(*gopf.Operator)) *gopf.Operator {
						op := plainOperator(&diary, config)
						gopf.For[*Example](op, resource).OnCreate("late", diary.failing("late", 1, 2*time.Minute))
						return op
					}
					runs(t, c, half(from), func() { c.Create(t, example("x", "a")) })
					w := &wire{next: c.Transport(), at: at, mishap: crashAfter, kill: func() {}}
					cfg := c.RESTConfig()
					cfg.Transport = w
					_ = half(into).MoveState(t.Context(), to, false, io.Discard, gopf.Cluster(cfg), gopf.Log(quiet()))
					for range 3 {
						runs(t, c, half(into), nil)
					}
					want := []string{"create a", "late create a #0", "late create a #1"}
					if !slices.Equal(diary.all(), want) {
						t.Errorf("calls %q, want %q", diary.all(), want)
					}
				})
			})
		}
	}
}
