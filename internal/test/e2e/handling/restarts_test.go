package handling_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// ends are the two ways in which an operator ends.
var ends = map[string]func(*operator){"stopped": (*operator).Stop, "killed": (*operator).kill}

// phase is a part of an object's life that takes two handlers.
type phase struct {
	name   string
	reason gopf.Reason
	begin  func(s *space) // makes it happen to the object x, which was handled as v1
	end    func(s *space) // waits until it is over
}

var phases = []phase{
	{"creation", gopf.Create,
		func(s *space) { s.Create(examples, "x", spec("v1")) },
		func(s *space) { s.waitHandled(examples, "x", "v1") }},
	{"update", gopf.Update,
		func(s *space) { s.Patch(examples, "x", spec("v2")) },
		func(s *space) { s.waitHandled(examples, "x", "v2") }},
	{"deletion", gopf.Delete,
		func(s *space) { s.Delete(examples, "x") },
		func(s *space) { s.waitGone(examples, "x") }},
	{"resuming", gopf.Resume,
		func(*space) {},
		func(s *space) { s.waitHandled(examples, "x", "v1") }},
}

// prepare makes the object that the phase is about, and lets it be handled.
func (p phase) prepare(s *space) {
	if p.reason == gopf.Create {
		return
	}
	op := newOperator()
	gopf.For[*Example](op, examples).On(p.reason&gopf.Delete|gopf.Update, "second", (&diary{}).handler("never"))
	s.Create(examples, "x", spec("v1"))
	o := s.start(op, nil)
	s.waitHandled(examples, "x", "v1")
	o.Stop()
}

// record is what is stored about a handler of the object x, if anything.
func (s *space) record(id string) (r struct {
	Delayed time.Time
	Retries int
	Success bool
}, found bool) {
	s.T.Helper()
	obj := s.Get(examples, "x")
	if obj == nil {
		return r, false
	}
	text, found := obj.GetAnnotations()["kopf.zalando.org/"+id]
	if found {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			s.T.Fatal(err)
		}
	}
	return r, found
}

func TestAHandlingGoesOnAfterARestartWhereItWas(t *testing.T) {
	t.Parallel()
	for _, p := range phases {
		for how, end := range ends {
			t.Run(p.name+", "+how, func(t *testing.T) {
				t.Parallel()
				s, d := newSpace(t), &diary{}
				p.prepare(s)
				var resumed atomic.Pointer[time.Time]
				declare := func() *gopf.Operator {
					op := newOperator()
					x := gopf.For[*Example](op, examples)
					x.On(p.reason, "first", result(d, "first"))
					x.On(p.reason, "second", func(_ context.Context, c *gopf.Change[*Example]) error {
						now := time.Now()
						d.Add("second %s #%d", c.Reason, c.Retry)
						if c.Retry == 0 {
							return gopf.RetryAfter(2*time.Second, errors.New("not yet"))
						}
						resumed.Store(&now)
						return nil
					})
					return op
				}
				o := s.start(declare(), nil).following("examples")
				p.begin(s)
				kit.Eventually(t, func() error {
					if r, found := s.record("second"); !found || r.Retries != 1 {
						return fmt.Errorf("the failure is not recorded: %v, %+v", found, r)
					}
					return nil
				})
				end(o)
				stored, _ := s.record("second")
				o = s.start(declare(), nil)
				p.end(s)
				if at := resumed.Load(); at == nil || at.Before(stored.Delayed) {
					t.Errorf("the second handler was called again at %v, want it after %v", at, stored.Delayed)
				}
				o.staysQuiet(t, d)
				field := "v1"
				if p.reason == gopf.Update {
					field = "v2"
				}
				d.Check(t, fmt.Sprintf("first %s %s", p.reason, field),
					fmt.Sprintf("second %s #0", p.reason), fmt.Sprintf("second %s #1", p.reason))
			})
		}
	}
}

func TestAHandlerThatIsKilledIsCalledAgainAsIfItHadNotBeenCalled(t *testing.T) {
	t.Parallel()
	for _, p := range phases {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			p.prepare(s)
			declare := func(blocks bool) *gopf.Operator {
				op := newOperator()
				op.Settings.Queueing.ExitTimeout = 10 * time.Millisecond
				x := gopf.For[*Example](op, examples)
				x.On(p.reason, "first", func(context.Context, *gopf.Change[*Example]) error {
					d.Add("first")
					return nil
				})
				x.On(p.reason, "second", func(ctx context.Context, c *gopf.Change[*Example]) error {
					d.Add("second #%d", c.Retry)
					if blocks {
						<-ctx.Done()
					}
					return nil
				})
				return op
			}
			o := s.start(declare(true), nil).following("examples")
			p.begin(s)
			d.WaitFor(t, "second #0")
			o.kill()
			o = s.start(declare(false), nil)
			p.end(s)
			o.staysQuiet(t, d)
			d.Check(t, "first", "second #0", "second #0")
		})
	}
}

func TestAHandlerHasTimeToReturnWhenTheOperatorStops(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	stopping := make(chan struct{})
	declare := func() *gopf.Operator {
		op := newOperator()
		gopf.For[*Example](op, examples).OnCreate("create_fn", func(ctx context.Context, c *gopf.Change[*Example]) error {
			d.Add("create #%d", c.Retry)
			<-stopping
			c.SetResult("done while stopping")
			return ctx.Err() // none: it is in time
		})
		return op
	}
	o := s.start(declare(), nil)
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "create #0")
	o.Cancel()
	kit.Eventually(t, func() error {
		if len(o.Log.With("The operator is stopping.")) == 0 {
			return errors.New("the operator is not stopping")
		}
		return nil
	})
	close(stopping)
	o.Stop()
	checkStatus(t, s.waitHandled(examples, "x", "a"), fields{"create_fn": "done while stopping"})
	s.start(declare(), nil).following("examples").staysQuiet(t, d)
	d.Check(t, "create #0")
}

func TestAHandlerCancelledByTheStopHasNotFailed(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	declare := func(blocks bool) *gopf.Operator {
		op := newOperator()
		op.Settings.Queueing.ExitTimeout = 10 * time.Millisecond
		gopf.For[*Example](op, examples).OnCreate("create_fn", func(ctx context.Context, c *gopf.Change[*Example]) error {
			d.Add("create #%d", c.Retry)
			if !blocks {
				return nil
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), gopf.ErrStopping) {
				t.Errorf("the cause of the cancellation is %v", context.Cause(ctx))
			}
			return ctx.Err()
		}, gopf.MaxAttempts(1))
		return op
	}
	o := s.start(declare(true), nil)
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "create #0")
	o.Stop()
	s.start(declare(false), nil)
	s.waitHandled(examples, "x", "a")
	d.Check(t, "create #0", "create #0")
}

func TestADelayThatIsOverWhenTheOperatorStartsIsNotAwaitedAgain(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.Create(examples, "x", fields{
		"metadata": fields{"annotations": fields{"kopf.zalando.org/create_fn": kopfRecord("create", fields{
			"retries": 3, "message": "not yet", "delayed": time.Now().Add(-time.Hour),
		})}},
		"spec": fields{"field": "a"},
	})
	op := newOperator()
	gopf.For[*Example](op, examples).OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.Add("create #%d", c.Retry)
		return nil
	})
	s.start(op, nil)
	s.waitHandled(examples, "x", "a")
	d.Check(t, "create #3")
}
