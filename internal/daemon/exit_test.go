package daemon

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/alarm"
)

func TestPausedTasksAreSpawnedAgainAtTheNextSight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, daemonOf(hearing(j, 0)), timerOf(time.Minute, func(context.Context, *Call) error { j.note("tick"); return nil }, named("timer")))
		k.see("a", sight{})
		synctest.Wait()
		k.Pause()
		if err := k.Settle(t.Context()); err != nil {
			t.Error(err)
		}
		same(t, []string{"0s tick", "0s stopping", "0s the operator is pausing"}, j.read())
		same(t, []string{
			"0s DEBUG Daemon 'fn' has exited on request and will not be retried or restarted.",
			"0s DEBUG Daemon 'fn' has exited gracefully.",
		}, k.said())
		k.see("a", sight{})
		time.Sleep(time.Hour)
		same(t, 0, len(j.read()))
		same(t, "", k.running("a"))

		k.Resume()
		k.see("a", sight{})
		same(t, []string{"1h0m0s tick"}, j.read())
		same(t, "fn timer", k.running("a"))
	})
}

func TestADaemonThatOutlivesThePauseIsSpawnedAgainWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, daemonOf(hearing(j, time.Minute)))
		k.see("a", sight{})
		synctest.Wait()
		k.Pause()
		time.Sleep(10 * time.Second)
		k.Resume()
		k.see("a", sight{})
		time.Sleep(time.Minute)
		same(t, []string{"1m0s a"}, k.wakes())
		same(t, "fn", k.running("a"))
		same(t, 2, len(j.read()))
	})
}

func TestExitWaitsForObedientTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t,
			daemonOf(hearing(j, 2*time.Second), named("slow")),
			daemonOf(hearing(j, time.Second), named("graceful"), grace(3*time.Second)),
			timerOf(time.Hour, hearing(j, 0), named("timer")),
		)
		k.ExitGrace = time.Second
		k.see("a", sight{})
		synctest.Wait()
		k.Exit(t.Context())
		j.note("over")
		heard := j.read()
		slices.Sort(heard)
		same(t, []string{
			"0s stopping", "0s stopping", "0s stopping", "0s the operator is stopping", // slow
			"1s the operator is stopping", // timer: running calls have their time (rule 4)
			"3s the operator is stopping", // graceful
			"4s over",
		}, heard)
		k.see("a", sight{})
		k.see("b", sight{})
		same(t, "", k.running("a")+k.running("b"))
		same(t, 0, len(k.wakes()))
	})
}

func TestExitAbandonsTasksThatDoNotStopInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		j := newJournal()
		k := newKit(t, daemonOf(stubborn(release), named("stubborn")), daemonOf(hearing(j, 0), named("graceful"), grace(time.Hour)))
		k.see("a", sight{})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		k.Exit(ctx)
		j.note("over")
		same(t, []string{"0s stopping", "5s the operator is stopping", "5.01s over"}, j.read())
		said := k.said()
		same(t, "5.01s WARN Daemon 'stubborn' did not exit in time. Leaving it orphaned.", said[len(said)-1])
		same(t, 0, k.Moving())
		close(release)
	})
}

func TestExitGivesUpUnsentWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, timerOf(time.Minute, func(_ context.Context, c *Call) error {
			c.Patch.Set(1, "status", "n")
			return nil
		}))
		k.Write = hanging
		k.see("a", sight{})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		k.Exit(ctx)
		synctest.Wait()
		same(t, "", k.running("a"))
		same(t, "5.01s", k.at())
	})
}

func TestNoGoroutinesAreLeaked(t *testing.T) {
	before := runtime.NumGoroutine()
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, daemonOf(obedient, named("daemon")), timerOf(time.Second, func(context.Context, *Call) error { return nil }, named("timer")))
		for i := range 200 {
			k.see(fmt.Sprint(i), sight{})
		}
		time.Sleep(10 * time.Second)
		for i := range 100 {
			k.see(fmt.Sprint(i), sight{deleting: true})
		}
		for i := 100; i < 140; i++ {
			k.object(fmt.Sprint(i)).Forget(ErrDeleted)
		}
		synctest.Wait()
		same(t, 60, len(k.snapshot()))
		same(t, 60, k.Moving())
		k.Exit(t.Context())
		synctest.Wait()
		same(t, 0, len(k.snapshot()))
		same(t, 0, k.Clock.Len())
	})
	if after := runtime.NumGoroutine(); after > before+few {
		t.Errorf("%d goroutines remain", after-before)
	}
}

func TestSpawningAndHaltingMayRace(t *testing.T) {
	clock := alarm.New((*Task).Ring)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go clock.Run(ctx)
	k := &kit{objects: map[string]*Object{}}
	k.Set = NewSet(Config{Specs: []*Spec{daemonOf(obedient)}, Clock: clock, Write: k.write, Wake: func(string) {}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 2000 {
			body := sight{}.body(fmt.Sprint(i % 100))
			k.objects[body.Name], _ = k.Sight(k.objects[body.Name], Sighting{Request: k.request(body), Again: k.request})
			if i%3 == 0 {
				k.objects[body.Name].Forget(ErrDeleted)
				delete(k.objects, body.Name)
			}
		}
	}()
	for range 50 {
		k.Pause()
		k.Resume()
	}
	k.Exit(t.Context())
	<-done
	if n, moving := len(k.snapshot()), k.Moving(); n+moving > 0 {
		t.Errorf("%d objects and %d tasks remain", n, moving)
	}
}
