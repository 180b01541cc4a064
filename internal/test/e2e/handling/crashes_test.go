package handling_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf"
)

// life is the reference life of an object, x, under an operator that is started
// again whenever it dies, with a mishap at one of its writes.
type life struct {
	*space
	mishap mishap
	at     int // the write, counted from 1 over all operators; 0 for none

	mu         sync.Mutex
	writes     int
	struck     bool
	successes  map[string]int
	unrecorded map[string]bool // successes since the last write that records them
	excused    map[string]bool // those that were unrecorded when the process was killed
}

// fate decides what happens to a write. Those of the object itself record what
// handlers have done, those of the status do not.
func (l *life) fate(_ int, w write) (what mishap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if l.writes == l.at {
		l.struck, what = true, l.mishap
	}
	if what != killedBefore && w.what == "PATCH examples/x" {
		clear(l.unrecorded)
	}
	if what == killedBefore || what == killedAfter {
		l.excused = maps.Clone(l.unrecorded)
	}
	return what
}

// note counts the success of a handler, unless its process is dead: then it
// never happened.
func (l *life) note(of *wire, name string) {
	if of.isDead() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.successes[name]++
	l.unrecorded[name] = true
}

// declare makes the reference operator: two handlers for creation, one of them
// with a result, one failing once; one for updating, with a change of the
// status; one for deletion.
func (l *life) declare(own func() *wire) *gopf.Operator {
	op := newOperator()
	op.Settings.Queueing.ExitTimeout = 10 * time.Millisecond
	x := gopf.For[*Example](op, examples)
	x.OnCreate("create_a", func(_ context.Context, c *gopf.Change[*Example]) error {
		c.SetResult(map[string]string{"message": "made " + c.Object.Spec.Field})
		l.note(own(), "create_a")
		return nil
	})
	x.OnCreate("create_b", func(_ context.Context, c *gopf.Change[*Example]) error {
		if c.Retry == 0 {
			return gopf.RetryAfter(300*time.Millisecond, errors.New("not yet"))
		}
		l.note(own(), "create_b")
		return nil
	})
	x.OnUpdate("update", func(_ context.Context, c *gopf.Change[*Example]) error {
		c.Patch.MergeStatus(map[string]string{"field": c.Object.Spec.Field})
		l.note(own(), "update "+c.Object.Spec.Field)
		return nil
	})
	x.OnDelete("delete", func(context.Context, *gopf.Change[*Example]) error {
		l.note(own(), "delete")
		return nil
	})
	return op
}

// look waits until the object is as it should be at the end of a phase, and
// tells what it is like.
func (l *life) look(field string) string {
	l.T.Helper()
	obj := l.waitHandled(examples, "x", field)
	annotations := obj.GetAnnotations()
	delete(annotations, bound) // it has the uid, and was checked
	return fmt.Sprint(obj.GetFinalizers(), annotations, obj.Object["status"])
}

// run lets the object live, and returns what it was like at the end of each
// phase.
func (l *life) run() (phases []string) {
	l.T.Helper()
	ctx, end := context.WithCancel(context.Background())
	var supervisor sync.WaitGroup
	supervisor.Go(func() { l.supervise(ctx, l.declare, l.fate) })
	defer func() { end(); supervisor.Wait() }()

	l.Create(examples, "x", spec("v1"))
	phases = append(phases, l.look("v1"))
	l.Patch(examples, "x", spec("v2"))
	phases = append(phases, l.look("v2"))
	l.Delete(examples, "x")
	l.waitGone(examples, "x")
	stays(l.T, calm, func() error { return l.tooMuch() })
	return phases
}

// tooMuch tells of handlers that were called more often than the crash excuses:
// what was not recorded when it came, is done once more, and nothing else.
func (l *life) tooMuch() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, n := range l.successes {
		if n > 2 || n == 2 && !l.excused[name] {
			return fmt.Errorf("successes: %v, while the crash excuses one repetition of %v", l.successes, l.excused)
		}
	}
	return nil
}

func newLife(t *testing.T, at int, what mishap) *life {
	return &life{space: newSpace(t), at: at, mishap: what, successes: map[string]int{}, unrecorded: map[string]bool{}}
}

func TestNothingIsLostOrRepeatedWhateverHappensToAnyWrite(t *testing.T) {
	t.Parallel()
	undisturbed := newLife(t, 0, "")
	phases := undisturbed.run()
	if want := map[string]int{"create_a": 1, "create_b": 1, "update v2": 1, "delete": 1}; !maps.Equal(undisturbed.successes, want) {
		t.Fatalf("undisturbed: got %v, want %v", undisturbed.successes, want)
	}
	const base = "map[kopf.zalando.org/last-handled-configuration:{\"spec\":{\"field\":\"%s\"}}\n]"
	if diff := cmp.Diff([]string{
		"[" + finalizer + "] " + fmt.Sprintf(base, "v1") + " map[create_a:map[message:made v1]]",
		"[" + finalizer + "] " + fmt.Sprintf(base, "v2") + " map[create_a:map[message:made v1] field:v2]",
	}, phases); diff != "" {
		t.Fatalf("undisturbed: -want +got\n%s", diff)
	}
	t.Logf("the undisturbed life takes %d writes", undisturbed.writes)
	for _, what := range []mishap{killedBefore, killedAfter, answerLost} {
		for at := 1; at <= undisturbed.writes; at++ {
			t.Run(fmt.Sprintf("%s write %d", what, at), func(t *testing.T) {
				t.Parallel()
				l := newLife(t, at, what)
				got := l.run()
				if diff := cmp.Diff(phases, got); diff != "" {
					t.Errorf("the object: -undisturbed +got\n%s", diff)
				}
				if !l.struck {
					t.Error("the write never came")
				}
				want := slices.Sorted(maps.Keys(undisturbed.successes))
				if got := slices.Sorted(maps.Keys(l.successes)); !slices.Equal(got, want) {
					t.Errorf("handlers that succeeded: got %q, want %q", got, want)
				}
			})
		}
	}
}
