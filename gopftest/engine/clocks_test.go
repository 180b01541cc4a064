package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/storage"
)

const progressOfCreate = "kopf.zalando.org/create"

// recorded returns an object with a record of the handler "create".
func recorded(t *testing.T, r storage.Record) map[string]string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{progressOfCreate: string(text)}
}

func TestClockSkewDoesNotProlongARecordedDelay(t *testing.T) {
	for name, c := range map[string]struct {
		ahead time.Duration // skew of the clock that wrote the record
		delay time.Duration // the recorded delay
		want  time.Duration // from the start of the operator to the call
	}{
		"the same clock":                {0, time.Minute, time.Minute},
		"an hour ahead":                 {time.Hour, time.Minute, time.Minute},
		"an hour behind":                {-time.Hour, time.Minute, 0},
		"an hour ahead, without delays": {time.Hour, 0, time.Hour + time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c2 *gopftest.Cluster) {
				var called []time.Duration
				begun := time.Now()
				there := begun.Add(c.ahead)
				o := example("x", "a")
				o.SetAnnotations(recorded(t, storage.Record{
					Started: there, Delayed: there.Add(time.Minute), Delay: c.delay, Purpose: "create", Retries: 1,
				}))
				c2.Create(t, o)
				op := gopf.New()
				gopf.For[*Example](op, resource).OnCreate("create", func(_ context.Context, ch *gopf.Change[*Example]) error {
					called = append(called, time.Since(begun))
					return nil
				}, gopf.Timeout(10*time.Minute))
				gopftest.Start(t, op, c2, gopf.Log(quiet()))
				time.Sleep(3 * time.Hour)
				synctest.Wait()
				if name == "an hour behind" { // its timeout is exceeded
					if len(called) != 0 {
						t.Errorf("called after %v, want never", called)
					}
					return
				}
				if len(called) != 1 || called[0] < c.want || called[0] > c.want+time.Second {
					t.Errorf("called after %v, want once after %s", called, c.want)
				}
			})
		})
	}
}

func TestClockSkewDoesNotStopRetries(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("create", diary.failing("create", 1, time.Minute))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(10 * time.Second)
		var r storage.Record
		if err := json.Unmarshal([]byte(get(t, c, "x").GetAnnotations()[progressOfCreate]), &r); err != nil || r.Delay != time.Minute {
			t.Fatalf("the record is %+v: %v", r, err)
		}
		r.Delayed = r.Delayed.Add(time.Hour)
		c.Patch(t, resource, "default", "x", map[string]any{"metadata": map[string]any{"annotations": recorded(t, r)}})
		time.Sleep(2 * time.Minute)
		if got := diary.all(); len(got) != 2 {
			t.Errorf("got %q within two minutes, want two calls", got)
		}
	})
}

func TestARecordedStartInTheFutureDoesNotProlongATimeout(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		attempts := 0
		begun := time.Now()
		o := example("x", "a")
		o.SetAnnotations(recorded(t, storage.Record{Started: begun.Add(time.Hour), Purpose: "create"}))
		c.Create(t, o)
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("create", func(ctx context.Context, _ *gopf.Change[*Example]) error {
			attempts++
			if end, ok := ctx.Deadline(); !ok || time.Until(end) > 5*time.Minute {
				t.Errorf("attempt %d may take until %v", attempts, end)
			}
			return gopf.RetryAfter(time.Minute, errors.New("not yet"))
		}, gopf.Timeout(5*time.Minute))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		time.Sleep(3 * time.Hour)
		if attempts != 5 {
			t.Errorf("%d attempts, want one a minute for five minutes", attempts)
		}
		if note := get(t, c, "x").GetAnnotations()[progressOfCreate]; note != "" {
			t.Errorf("the handling is not finished: %s", note)
		}
	})
}
