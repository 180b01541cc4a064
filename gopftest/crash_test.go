package gopftest_test

import (
	"context"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestCrashAtEveryWriteCrashesBeforeAndAfterEachWrite(t *testing.T) {
	lives, starts, calls := 0, 0, 0
	gopftest.CrashAtEveryWrite(t, gopftest.Life{
		Cluster: func(t testing.TB) *gopftest.Cluster { return gopftest.NewCluster(t, examples) },
		Operator: func() *gopf.Operator {
			starts++
			op := gopf.New()
			op.Settings.Posting.Enabled = false
			gopf.For[*example](op, examples).OnCreate("create", func(_ context.Context, c *gopf.Change[*example]) error {
				calls++
				c.SetResult("done")
				return nil
			})
			return op
		},
		Live: func(t testing.TB, c *gopftest.Cluster) {
			lives++
			c.Create(t, newExample("a", 1))
			time.Sleep(time.Minute)
			if got := gopftest.Get[*example](t, c, examples, "default", "a"); got.Status["create"] != "done" {
				t.Errorf("the result is lost: %+v", got)
			}
		},
	})
	// The operator makes two writes: the result in the status, then the base.
	if lives != 1+2*2 || starts != 1+2*4 {
		t.Errorf("%d runs with %d starts", lives, starts)
	}
	// Only a crash before the outcome is recorded repeats the handler: before and after
	// the first write, and before the second.
	if calls != 1+3*2+1 {
		t.Errorf("%d calls", calls)
	}
}
