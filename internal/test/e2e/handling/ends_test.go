package handling_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
)

// The removal of the last finalizer makes no new version: the stream may still
// tell of a state of the same version that has it.
func TestADeletionIsNotHandledAgainBecauseOfAnEchoOfTheSameVersion(t *testing.T) {
	t.Parallel()
	for name, beside := range map[string]func(x *gopf.Resource[*Example]){
		"an event handler writes": func(x *gopf.Resource[*Example]) {
			x.OnEvent("writing_fn", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
				e.Patch.MergeStatus(map[string]string{"seen": "rival " + e.Object.Labels["rival"]})
				return nil
			})
		},
		"a daemon runs": func(x *gopf.Resource[*Example]) {
			x.OnEvent("event_fn", func(context.Context, *gopf.WatchEvent[*Example]) error { return nil }) // so that all events are told
			x.Daemon("daemon_fn", func(ctx context.Context, _ *gopf.Daemon[*Example]) error {
				<-ctx.Done()
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			op := newOperator()
			x := gopf.For[*Example](op, examples)
			x.OnDelete("delete_fn", d.handler("delete"))
			beside(x)
			struck := false
			o := s.start(op, func(_ int, w write) mishap {
				if !struck && strings.Contains(w.body, `{"op":"remove","path":"/metadata/finalizers`) {
					struck = true // somebody else changes it, so that it is tried again on what the stream tells afterwards
					if err := s.TryPatch(examples, "x", fields{"metadata": fields{"labels": fields{"rival": "yes"}}}); err != nil {
						t.Error(err)
					}
				}
				return ""
			})
			s.Create(examples, "x", spec("a"))
			s.waitHandled(examples, "x", "a")
			o.settles(t, d)
			s.Delete(examples, "x")
			s.waitGone(examples, "x")
			o.settles(t, d)
			d.Check(t, "delete delete a")
		})
	}
}

// A daemon may take its time to stop. The deletion waits for it, but what is done
// of it already is not done again and again.
func TestADeletionIsHandledOnceHoweverLongDaemonsTakeToStop(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed in between %v", killed), func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			release := make(chan struct{})
			declare := func() *gopf.Operator {
				op := newOperator()
				op.Settings.Queueing.ExitTimeout = 10 * time.Millisecond
				x := gopf.For[*Example](op, examples)
				x.OnDelete("delete_fn", d.handler("delete"))
				x.Daemon("daemon_fn", func(ctx context.Context, _ *gopf.Daemon[*Example]) error {
					d.Add("daemon starts")
					<-ctx.Done()
					<-release
					return nil
				})
				return op
			}
			o := s.start(declare(), nil)
			s.Create(examples, "x", spec("a"))
			d.WaitFor(t, "daemon starts")
			s.waitHandled(examples, "x", "a")
			s.Delete(examples, "x")
			d.WaitFor(t, "delete delete a")
			s.Patch(examples, "x", fields{"metadata": fields{"labels": fields{"other": "news"}}})
			o.settles(t, d)
			if killed {
				o.wire.die()
			}
			close(release)
			if killed {
				o.Stop()
				s.start(declare(), nil)
			}
			s.waitGone(examples, "x")
			d.Check(t, "daemon starts", "delete delete a")
		})
	}
}
