package handling_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gopf.dev/gopf"
)

func TestErrorsAreRetriedAsTheyAskFor(t *testing.T) {
	t.Parallel()
	oops := errors.New("oops")
	once := func(err error) func(context.Context, int) error {
		return func(_ context.Context, retry int) error {
			if retry == 0 {
				return err
			}
			return nil
		}
	}
	always := func(err error) func(context.Context, int) error {
		return func(context.Context, int) error { return err }
	}
	for _, test := range []struct {
		name   string
		fn     func(ctx context.Context, retry int) error
		opts   []gopf.ChangeOption
		want   []string
		result bool // is expected
		log    string
	}{
		{"temporary", once(gopf.RetryAfter(100*time.Millisecond, oops)), nil,
			[]string{"#0", "#1"}, true, "failed temporarily: oops"},
		{"waiting", once(gopf.Wait(100*time.Millisecond, "it is not there")), nil,
			[]string{"#0", "#1"}, true, "is waiting: it is not there"},
		{"any other", once(oops), []gopf.ChangeOption{gopf.Backoff(100 * time.Millisecond)},
			[]string{"#0", "#1"}, true, "failed with an exception and will try again in 0.1 seconds: oops"},
		{"a panic", func(_ context.Context, retry int) error {
			if retry == 0 {
				panic("oops")
			}
			return nil
		}, nil, []string{"#0", "#1"}, true, "will try again in 0.2 seconds: panic: oops"},
		{"permanent", always(gopf.Permanent(oops)), nil, []string{"#0"}, false, "failed permanently: oops"},
		{"any other, to be ignored", always(oops), []gopf.ChangeOption{gopf.ErrorsIgnored()},
			[]string{"#0"}, false, "failed with an exception and will ignore it: oops"},
		{"any other, to be final", always(oops), []gopf.ChangeOption{gopf.ErrorsPermanent()},
			[]string{"#0"}, false, "failed with an exception and will stop now: oops"},
		{"too many", always(gopf.RetryAfter(50*time.Millisecond, oops)), []gopf.ChangeOption{gopf.MaxAttempts(3)},
			[]string{"#0", "#1", "#2"}, false, "failed temporarily but will exceed 3 retries: oops"},
		{"too late", func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, []gopf.ChangeOption{gopf.Timeout(300 * time.Millisecond)}, []string{"#0"}, false, "has run out of time"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			declare := func() *gopf.Operator {
				op := newOperator()
				gopf.For[*Example](op, examples).OnCreate("create_fn", func(ctx context.Context, c *gopf.Change[*Example]) error {
					d.Add("#%d", c.Retry)
					c.SetResult("done")
					return test.fn(ctx, c.Retry)
				}, test.opts...)
				return op
			}
			o := s.start(declare(), nil)
			s.Create(examples, "x", spec("a"))
			obj := s.waitHandled(examples, "x", "a")
			if test.result {
				checkStatus(t, obj, fields{"create_fn": "done"})
			} else if obj.Object["status"] != nil {
				t.Errorf("status: %v, want no result of a failure", obj.Object["status"])
			}
			if len(o.Log.With(test.log)) == 0 {
				t.Errorf("no log line has %q", test.log)
			}
			o.Stop()
			s.start(declare(), nil).following("examples").staysQuiet(t, d)
			d.Check(t, test.want...)
		})
	}
}
