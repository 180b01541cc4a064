package life_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
	"gopf.dev/gopf/storage"
)

func TestARecordOfAClockThatIsAnHourAheadDoesNotStopRetries(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	const delay = 15 * time.Second // the first operator must stop earlier
	operator := func(name string) *gopf.Operator {
		op := newOperator()
		gopf.For[*Example](op, examples).OnCreate("delayed", func(_ context.Context, c *gopf.Change[*Example]) error {
			d.Add("%s #%d", name, c.Retry)
			if c.Retry == 0 {
				return gopf.RetryAfter(delay, errors.New("not yet"))
			}
			return nil
		}, gopf.Timeout(10*time.Minute))
		return op
	}
	const key = "kopf.zalando.org/delayed"
	one := s.start(operator("one")).serving()
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "one #0")
	kit.Await(t, "the attempt is recorded", func() bool { return s.Get(examples, "x").GetAnnotations()[key] != "" })
	one.Stop()
	var r storage.Record
	if err := json.Unmarshal([]byte(s.Get(examples, "x").GetAnnotations()[key]), &r); err != nil || r.Delay != delay {
		t.Fatalf("the record is %+v: %v", r, err)
	}
	r.Started, r.Delayed = r.Started.Add(time.Hour), r.Delayed.Add(time.Hour)
	s.Patch(examples, "x", fields{"metadata": fields{"annotations": fields{key: r.Encode(false)}}})
	begun := time.Now()
	s.start(operator("two")).serving()
	d.WaitFor(t, "two #1")
	if took := time.Since(begun); took < delay {
		t.Errorf("the second attempt came after %s, want it after the delay of %s", took, delay)
	}
	s.waitHandled("x", "a")
}
