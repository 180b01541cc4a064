package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/storage"
)

// The state before the handler ran already has the phase Ready, but the handler itself
// has changed it since.
func TestTheLastChangeOfAHandlerIsWrittenWhateverItWroteItself(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		work := func(ctx context.Context, ch *gopf.Change[*Example]) error {
			me := &Example{}
			me.Name, me.Namespace = ch.Object.Name, ch.Object.Namespace
			if err := ch.API.Merge(ctx, me, map[string]any{"status": map[string]any{"phase": "Working"}}, client.StatusSubresource()); err != nil {
				return err
			}
			time.Sleep(5 * time.Second) // the work
			ch.Patch.Set("status.phase", "Ready")
			return nil
		}
		x.On(gopf.Create|gopf.Update, "work", work)
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		if s := get(t, c, "x").Object["status"]; fmt.Sprint(s) != "map[phase:Ready]" {
			t.Errorf("after the creation: %v", s)
		}
		c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "b"}))
		time.Sleep(time.Hour)
		if s := get(t, c, "x").Object["status"]; fmt.Sprint(s) != "map[phase:Ready]" {
			t.Errorf("after the update: %v, want Ready", s)
		}
	})
}

// With state in the status, changes of both handlers are stored in the note, and sent in
// the turn after it. By then the first handler is due again: its newer value must win.
func TestANewerChangeOfAHandlerIsWrittenAfterItsStoredOne(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		op.Settings.Persistence.Progress, op.Settings.Persistence.Base = storage.NewStatusProgress("op"), storage.NewStatusBase("op")
		x := gopf.For[*Example](op, resource)
		x.OnCreate("phase", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.Patch.Set("status.phase", fmt.Sprint("attempt ", ch.Retry))
			if ch.Retry == 0 {
				return gopf.RetryAfter(time.Second, errors.New("later"))
			}
			return nil
		})
		x.OnCreate("label", func(_ context.Context, ch *gopf.Change[*Example]) error {
			time.Sleep(10 * time.Second) // the other one is due at the end
			ch.Patch.Label("made", "yes")
			return nil
		})
		op.Settings.Execution.Lifecycle = gopf.AllAtOnce
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Hour)
		got := get(t, c, "x")
		if status, _ := got.Object["status"].(map[string]any); status["phase"] != "attempt 1" || got.GetLabels()["made"] != "yes" {
			t.Errorf("got %v, %v", status["phase"], got.GetLabels())
		}
	})
}

// When the third flush is made, the watch has not shown the second one yet, and the state
// that it has shown equals the third.
func TestTheLastFlushOfADaemonIsWrittenThoughTheStreamLags(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.Daemon("d", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
			for _, phase := range []string{"Ready", "", "Checking", "Ready"} {
				if phase == "" { // the watch has shown Ready
					time.Sleep(time.Minute)
					continue
				}
				d.Patch.Set("status.phase", phase)
				if err := d.Flush(ctx); err != nil {
					return err
				}
			}
			<-ctx.Done()
			return nil
		}, gopf.Optional())
		gopftest.Start(t, op, c)
		settle()
		// Any lag of the watch reproduces this: 50 ms here.
		c.Fault(gopftest.Requests("watch", "kopfexamples"), gopftest.DelayEvents(50*time.Millisecond))
		c.Create(t, example("x", "a"))
		time.Sleep(time.Hour)
		if s := get(t, c, "x").Object["status"]; fmt.Sprint(s) != "map[phase:Ready]" {
			t.Errorf("got %v, want Ready, which was flushed last", s)
		}
	})
}
