package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
)

func TestADaemonIsSpawnedOnceForEachObjectThatMatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, daemonOf(func(ctx context.Context, c *Call) error {
			j.note(c.Body.Name + " " + c.Key())
			return obedient(ctx, c)
		}, labelled("tier", "prod")))
		prod := sight{labels: map[string]any{"tier": "prod"}}
		k.see("a", prod)
		k.see("b", sight{})
		k.see("a", prod)
		same(t, []string{"0s a a/fn"}, j.read())
		if k.object("b") != nil {
			t.Error("kept state of an object without matching specs")
		}
	})
}

func TestADaemonOfAFieldNeedsTheFieldInTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, daemonOf(obedient, func(s *Spec) {
			s.Change = &handler.Change{Path: []string{"spec", "size"}, Value: handler.Equal("big")}
		}))
		k.see("a", sight{spec: map[string]any{"size": "small"}})
		same(t, "", k.running("a"))
		k.see("a", sight{spec: map[string]any{"size": "big"}})
		same(t, "fn", k.running("a"))
	})
}

func TestADaemonThatReturnsIsOverAndWakesItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, daemonOf(func(context.Context, *Call) error { time.Sleep(5 * time.Second); return nil }))
		k.see("a", sight{})
		time.Sleep(time.Minute)
		same(t, []string{"5s a"}, k.wakes())
		same(t, []string{"5s DEBUG Daemon 'fn' has exited on its own and will not be retried or restarted."}, k.said())
		k.see("a", sight{})
		same(t, "", k.running("a"))
		same(t, "fn", k.over("a"))
	})
}

func TestADaemonIsRetriedAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, daemonOf(func(ctx context.Context, c *Call) error {
			j.note(fmt.Sprintf("%d %v", c.Retry, time.Since(c.Started)))
			switch c.Retry {
			case 0:
				return &handler.TemporaryError{Err: errors.New("later"), Delay: handler.Some(7 * time.Second)}
			case 1:
				return errors.New("oops")
			case 2:
				panic("oh no")
			}
			return obedient(ctx, c)
		}))
		k.see("a", sight{})
		time.Sleep(time.Hour)
		same(t, []string{"0s 0 0s", "7s 1 7s", "1m7s 2 1m7s", "2m7s 3 2m7s"}, j.read())
		same(t, "fn", k.running("a"))
	})
}

func TestTheInitialDelayMayDependOnTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, daemonOf(func(ctx context.Context, c *Call) error {
			j.note(c.Body.Name)
			return obedient(ctx, c)
		}, func(s *Spec) {
			s.InitialDelay = func(r *handler.Request) time.Duration {
				d, err := time.ParseDuration(r.Body.Map()["spec"].(string))
				if err != nil {
					t.Error(err)
				}
				return d
			}
		}))
		k.see("a", sight{spec: "9s"})
		k.see("b", sight{spec: "3s"})
		time.Sleep(time.Minute)
		same(t, []string{"3s b", "9s a"}, j.read())
	})
}

func TestADaemonSeesTheNewestStateOfItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, daemonOf(func(ctx context.Context, c *Call) error {
			for range 4 {
				j.note(fmt.Sprint(c.Body.Map()["spec"], " now ", c.Current().Map()["spec"]))
				time.Sleep(10 * time.Second)
			}
			return obedient(ctx, c)
		}))
		k.see("a", sight{spec: 1})
		time.Sleep(5 * time.Second)
		k.see("a", sight{spec: 2})
		time.Sleep(10 * time.Second)
		k.object("a").See(sight{spec: 3}.body("a")) // of an event that did not reach Sight
		time.Sleep(time.Minute)
		same(t, []string{"0s 1 now 1", "10s 1 now 2", "20s 1 now 3", "30s 1 now 3"}, j.read())
	})
}

func TestKeptBodiesAreNotDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, daemonOf(func(ctx context.Context, c *Call) error {
			c.Current().Map()
			c.Body.Map()
			return obedient(ctx, c)
		}))
		k.see("a", sight{spec: 1})
		synctest.Wait()
		if first := k.object("a").Body(); first == k.last["a"] || first == k.object("a").Body() {
			t.Error("the kept body is shared with callers that decode it")
		}
	})
}

func TestKeptBodiesAreCompressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, daemonOf(obedient))
		for _, name := range []string{"a", "b"} {
			b, err := object.Parse(fmt.Appendf(nil, `{"metadata":{"name":%q,"uid":%[1]q,"resourceVersion":"1"},"spec":{"text":%q}}`, name, strings.Repeat("filler", 500)))
			if err != nil {
				t.Fatal(err)
			}
			k.see(name, sight{spec: 1})
			k.object(name).See(b)
		}
		if size := k.object("b").body.Size(); size > 300 {
			t.Errorf("%d bytes are kept", size)
		}
	})
}

func TestADaemonIsSpawnedAgainWhenItMatchesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		var at atomic.Int32
		k := newKit(t, daemonOf(func(ctx context.Context, _ *Call) error {
			if at.Add(1) > 1 {
				t.Error("two instances at a time")
			}
			defer at.Add(-1)
			j.note("runs")
			<-ctx.Done()
			j.note(context.Cause(ctx))
			time.Sleep(30 * time.Second) // for its cleanup
			return ctx.Err()
		}, labelled("on", "yes")))
		on, off := sight{labels: map[string]any{"on": "yes"}}, sight{}
		k.see("a", on)
		time.Sleep(time.Minute)
		k.see("a", off)
		time.Sleep(10 * time.Second)
		k.see("a", on) // while it is still exiting
		time.Sleep(time.Minute)
		same(t, []string{"0s runs", "1m0s the object does not match the filters anymore", "1m30s runs"}, j.read())
		same(t, []string{"1m30s a"}, k.wakes())

		k.see("a", off)
		time.Sleep(time.Minute)
		if k.object("a") != nil {
			t.Error("kept state of the object")
		}
		k.see("a", on)
		j.read()
		same(t, "fn", k.running("a"))
	})
}

func TestAMandatoryDaemonMayWaitForTheFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, daemonOf(obedient, named("mandatory")), daemonOf(obedient, named("optional"), optional))
		k.see("a", sight{unguarded: true})
		same(t, "optional", k.running("a"))
		k.see("a", sight{})
		same(t, "optional mandatory", k.running("a"))
	})
}

func TestOptionalDaemonsDoNotDelayDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		k := newKit(t, daemonOf(stubborn(release), optional))
		k.see("a", sight{})
		if k.Blocking(k.object("a"), k.request(k.last["a"])) {
			t.Error("it requires the finalizer")
		}
		if due := k.see("a", sight{deleting: true}); due.Set {
			t.Errorf("the deletion waits for %v", due.Is)
		}
	})
}

func TestNothingIsSpawnedForObjectsThatAreBeingDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, daemonOf(obedient))
		if due := k.see("a", sight{deleting: true}); due.Set || k.object("a") != nil {
			t.Error("a task was spawned")
		}
		// But the finalizer of an earlier process must still be removed.
		if !k.Blocking(nil, k.request(k.last["a"])) {
			t.Error("the deletion does not wait for it")
		}
	})
}

func TestAPanicOfAFilterLeavesNothingLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		k := newKit(t, daemonOf(obedient, func(s *Spec) {
			s.When = append(s.When, func(*handler.Request) bool {
				if broken {
					panic("oops")
				}
				return true
			})
		}))
		func() {
			defer func() { _ = recover() }()
			k.see("a", sight{})
		}()
		broken = false
		k.see("a", sight{})
		same(t, "fn", k.running("a"))
	})
}

func TestNothingIsSpawnedForObjectsThatAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, daemonOf(obedient))
		k.see("a", sight{})
		k.object("a").Forget(ErrUnmatched)
		k.see("a", sight{}) // by a turn that had already started
		same(t, "", k.running("a"))
		same(t, 0, len(k.wakes()))
	})
}
