package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// upgrade is a handler of four steps. Each step adds a line and returns what its function
// returns; nil means success.
type upgrade struct {
	diary                 *calls
	snapshot, drain, move func(*gopf.Change[*Example]) error
	runs                  bool // it calls RunSubs
}

func (u upgrade) handle(ctx context.Context, ch *gopf.Change[*Example]) error {
	step := func(name string, fn func(*gopf.Change[*Example]) error) gopf.ChangeFunc[*Example] {
		return func(_ context.Context, ch *gopf.Change[*Example]) error {
			u.diary.add("%s %s #%d", name, ch.Object.Spec.Field, ch.Retry)
			if fn == nil {
				return nil
			}
			return fn(ch)
		}
	}
	var steps []*gopf.SubHandler
	ch.Sub("unlock", func(ctx context.Context, ch *gopf.Change[*Example]) error {
		var outcomes []string
		for _, s := range steps {
			done, err := s.Outcome(ctx)
			switch {
			case err != nil:
				outcomes = append(outcomes, err.Error())
			case done:
				outcomes = append(outcomes, "done")
			default:
				outcomes = append(outcomes, "open")
			}
		}
		u.diary.add("unlock [%s]", strings.Join(outcomes, ", "))
		return nil
	}, gopf.Finally())
	snapshot := ch.Sub("snapshot", step("snapshot", u.snapshot))
	drain := ch.Sub("drain", step("drain", u.drain), gopf.DependsOn(snapshot))
	move := ch.Sub("move", step("move", u.move), gopf.DependsOn(snapshot, drain), gopf.Timeout(time.Minute))
	steps = append(steps, snapshot, drain, move)
	if u.runs {
		if err := ch.RunSubs(ctx, gopf.InOrderOf(gopf.AllAtOnce), gopf.Parallel(4)); err != nil {
			return err
		}
		u.diary.add("upgraded")
	}
	return nil
}

func (u upgrade) operator() *gopf.Operator {
	op := gopf.New()
	x := gopf.For[*Example](op, resource)
	x.OnCreate("up", u.handle)
	x.OnUpdate("up", u.handle)
	return op
}

func later(ch *gopf.Change[*Example]) error {
	if ch.Retry < 2 {
		return gopf.Wait(5*time.Minute, "not yet")
	}
	return nil
}

func broken(*gopf.Change[*Example]) error { return gopf.Permanent(errors.New("the disk is full")) }

func TestASubHandlerWaitsForItsDependencies(t *testing.T) {
	for _, explicit := range []bool{false, true} {
		bubble(t, func(t *testing.T, c *gopftest.Cluster) {
			var diary calls
			op := upgrade{diary: &diary, snapshot: later, drain: later, runs: explicit}.operator()
			runs(t, c, op, func() { c.Create(t, example("x", "a")); time.Sleep(time.Hour) })
			want := []string{"snapshot a #0", "snapshot a #1", "snapshot a #2", "drain a #0", "drain a #1", "drain a #2", "move a #0", "unlock [done, done, done]"}
			if explicit {
				want = append(want, "upgraded")
			}
			if !slices.Equal(diary.all(), want) {
				t.Errorf("calls %q, want %q", diary.all(), want)
			}
		})
	}
}

func TestASubHandlerFailsIfADependencyFailed(t *testing.T) {
	const failed = "sub-handlers failed: snapshot: the disk is full"
	for _, explicit := range []bool{false, true} {
		bubble(t, func(t *testing.T, c *gopftest.Cluster) {
			var diary calls
			var log lines
			op := upgrade{diary: &diary, snapshot: broken, runs: explicit}.operator()
			runs(t, c, op, func() { c.Create(t, example("x", "a")); time.Sleep(time.Hour) }, gopf.Log(log.logger()))
			want := []string{"snapshot a #0", "unlock [" + failed +
				", sub-handlers failed: drain: Handler 'up/drain' is not called, because 'up/snapshot' failed." +
				", sub-handlers failed: move: Handler 'up/move' is not called, because 'up/snapshot' failed.]"}
			if !slices.Equal(diary.all(), want) {
				t.Errorf("calls %q, want %q", diary.all(), want)
			}
			if log.has("Handler 'up' failed permanently: sub-handlers failed: drain: ", "; snapshot: the disk is full") != explicit || log.has("Handler 'up' succeeded.") == explicit {
				t.Errorf("RunSubs is called: %v; got %q", explicit, log.text)
			}
		})
	}
}

func TestOutcomesOfSubHandlersAreKnownAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		operator := func() *gopf.Operator {
			op := gopf.New()
			gopf.For[*Example](op, resource).OnCreate("up", func(ctx context.Context, ch *gopf.Change[*Example]) error {
				bad := ch.Sub("bad", func(context.Context, *gopf.Change[*Example]) error { diary.add("bad"); return broken(nil) })
				good := ch.Sub("good", func(context.Context, *gopf.Change[*Example]) error { diary.add("good"); return nil })
				left := ch.Sub("left", func(context.Context, *gopf.Change[*Example]) error { return nil }, gopf.If(false))
				slow := ch.Sub("slow", func(_ context.Context, ch *gopf.Change[*Example]) error { return later(ch) })
				for _, s := range []*gopf.SubHandler{bad, good, left, slow} { // before the sub-handlers run
					done, err := s.Outcome(ctx)
					diary.add("%v %v", done, err)
				}
				return ch.RunSubs(ctx, gopf.InOrderOf(gopf.AllAtOnce))
			})
			return op
		}
		runs(t, c, operator(), func() { c.Create(t, example("x", "a")); settle() })
		runs(t, c, operator(), func() { time.Sleep(6 * time.Minute) })
		want := []string{"false <nil>", "false <nil>", "true <nil>", "false <nil>", "bad", "good",
			"true sub-handlers failed: bad: the disk is full", "true <nil>", "true <nil>", "false <nil>"}
		if !slices.Equal(diary.all(), want) {
			t.Errorf("calls %q, want %q", diary.all(), want)
		}
	})
}

func TestAStepIsCalledWhenItsDependencySucceedsForALaterState(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		u := upgrade{diary: &diary, runs: true}
		u.snapshot = func(ch *gopf.Change[*Example]) error {
			if ch.Object.Spec.Field == "a" {
				changeField(t, c, "x", "b") // before the failure is recorded
				return broken(ch)
			}
			return nil
		}
		runs(t, c, u.operator(), func() { c.Create(t, example("x", "a")); time.Sleep(time.Hour) })
		all := diary.all()
		if i := slices.Index(all, "snapshot b #0"); i < 0 || !slices.Contains(all[i:], "move b #0") || all[len(all)-1] != "upgraded" {
			t.Errorf("calls %q", all)
		}
	})
}

func TestMistakesInStagesFailTheHandler(t *testing.T) {
	nothing := func(context.Context, *gopf.Change[*Example]) error { return nil }
	var kept *gopf.SubHandler
	for want, declare := range map[string]func(ch *gopf.Change[*Example]){
		"Finally waits for all others": func(ch *gopf.Change[*Example]) {
			ch.Sub("b", nothing, gopf.Finally(), gopf.DependsOn(ch.Sub("a", nothing)))
		},
		"it depends on a sub-handler that runs last": func(ch *gopf.Change[*Example]) {
			ch.Sub("b", nothing, gopf.DependsOn(ch.Sub("a", nothing, gopf.Finally())))
		},
		"it depends on a sub-handler of another call": func(ch *gopf.Change[*Example]) {
			ch.Sub("b", nothing, gopf.DependsOn(kept))
		},
		"an option of Want does not apply": func(ch *gopf.Change[*Example]) { ch.Sub("b", nothing, gopf.CreateOnly()) },
	} {
		bubble(t, func(t *testing.T, c *gopftest.Cluster) {
			other := gopftest.Change(t, c, typed("other"))
			kept = other.Sub("a", nothing)
			call := gopftest.Change(t, c, typed("x"))
			err := call.Run(func(_ context.Context, ch *gopf.Change[*Example]) error { declare(ch); return nil })
			if !errors.As(err, new(*gopf.PermanentError)) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
	op := gopf.New()
	gopf.For[*Example](op, resource).OnCreate("a", nothing, gopf.Finally())
	if err := op.Err(); err == nil || !strings.Contains(err.Error(), "DependsOn and Finally work only for sub-handlers") {
		t.Errorf("got %v", err)
	}
}

func TestDependentSubHandlersRunInTestsOfHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		for _, snapshot := range []func(*gopf.Change[*Example]) error{nil, broken} {
			var diary calls
			u := upgrade{diary: &diary, snapshot: snapshot, runs: true}
			call := gopftest.Change(t, c, typed("x"))
			err := call.Run(u.handle)
			want := []string{"snapshot  #0", "drain  #0", "move  #0", "unlock [done, done, done]", "upgraded"}
			if snapshot == nil && (err != nil || !slices.Equal(diary.all(), want)) {
				t.Errorf("calls %q, %v", diary.all(), err)
			}
			if snapshot != nil && (len(diary.all()) != 2 || !errors.As(err, new(*gopf.SubsError))) {
				t.Errorf("calls %q, %v", diary.all(), err)
			}
		}
	})
}

func typed(name string) *Example {
	return &Example{
		TypeMeta:   metav1.TypeMeta{APIVersion: "kopf.dev/v1", Kind: "KopfExample"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
	}
}
