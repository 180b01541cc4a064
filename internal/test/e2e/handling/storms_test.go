package handling_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
)

// storm is a time in which many things go wrong at random.
type storm struct {
	*space
	kills bool // operators die, too

	mu       sync.Mutex
	dice     *rand.Rand
	writes   int
	mishaps  map[mishap]int
	returned map[string]int // by handler and object: successes
}

func (s *storm) fate(_ int, w write) mishap {
	s.mu.Lock()
	n := s.dice.IntN(100)
	s.writes++
	what := mishap("")
	switch {
	case n < 10:
		what = refused
	case n < 20:
		what = answerLost
	case n < 23 && s.kills:
		what = killedBefore
	case n < 26 && s.kills:
		what = killedAfter
	}
	s.mishaps[what]++
	rival := s.dice.IntN(100) < 20
	value := fmt.Sprint(s.writes)
	s.mu.Unlock()
	if rival {
		name := strings.Split(w.what, "/")[1]
		_ = s.TryPatch(examples, name, fields{"metadata": fields{"labels": fields{"rival": value}}}) // it may be gone
	}
	return what
}

func (s *storm) note(of *wire, format string, args ...any) {
	if of.isDead() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned[fmt.Sprintf(format, args...)]++
}

func (s *storm) declare(own func() *wire) *gopf.Operator {
	op := newOperator()
	op.Settings.Queueing.ExitTimeout = 10 * time.Millisecond
	x := gopf.For[*Example](op, examples)
	for _, id := range []string{"create_a", "create_b"} {
		x.OnCreate(id, func(_ context.Context, c *gopf.Change[*Example]) error {
			if c.Retry == 0 && id == "create_b" {
				return gopf.Wait(100*time.Millisecond, "not yet")
			}
			c.SetResult(c.Object.Name)
			s.note(own(), "%s %s", id, c.Object.Name)
			return nil
		})
	}
	x.OnUpdate("update_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		c.Patch.MergeStatus(map[string]string{"updated": essenceOf(c.Raw())})
		return nil
	})
	x.OnDelete("delete_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		s.note(own(), "delete_fn %s", c.Object.Name)
		return nil
	})
	return op
}

func TestObjectsComeThroughStorms(t *testing.T) {
	t.Parallel()
	for _, kills := range []bool{false, true} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("with kills %v, seed %d", kills, seed), func(t *testing.T) {
				t.Parallel()
				s := &storm{space: newSpace(t), kills: kills, dice: rand.New(rand.NewPCG(seed, seed)),
					mishaps: map[mishap]int{}, returned: map[string]int{}}
				s.weather()
				t.Logf("%d writes, with mishaps %v", s.writes, s.mishaps)
				for i := range 4 {
					for _, id := range []string{"create_a", "create_b", "delete_fn"} {
						if n := s.returned[fmt.Sprintf("%s x%d", id, i)]; n == 0 || n > 1 && !kills {
							t.Errorf("%s of x%d was called %d times", id, i, n)
						}
					}
				}
			})
		}
	}
}

// weather lets some objects live through the storm.
func (s *storm) weather() {
	s.T.Helper()
	ctx, end := context.WithCancel(context.Background())
	var supervisor sync.WaitGroup
	supervisor.Go(func() { s.supervise(ctx, s.declare, s.fate) })
	defer func() { end(); supervisor.Wait() }()
	each := func(do func(name string)) {
		for i := range 4 {
			do(fmt.Sprint("x", i))
		}
	}
	settled := func(name string) {
		s.T.Helper()
		s.waitFor(examples, name, func(obj *unstructured.Unstructured) error {
			if base, now := strings.TrimSpace(obj.GetAnnotations()[lastHandled]), essenceOf(obj.Object); base != now {
				return fmt.Errorf("last handled was %s, but it is %s", base, now)
			}
			for _, id := range []string{"create_a", "create_b"} {
				if got, _, _ := unstructured.NestedString(obj.Object, "status", id); got != name {
					return fmt.Errorf("status: %v", obj.Object["status"])
				}
			}
			if seen, _, _ := unstructured.NestedString(obj.Object, "status", "updated"); seen != "" && seen != essenceOf(obj.Object) {
				return fmt.Errorf("the last update saw %s, but it is %s", seen, essenceOf(obj.Object))
			}
			return pendingNone(obj)
		})
	}
	each(func(name string) { s.Create(examples, name, spec("a")) })
	each(settled)
	each(func(name string) { s.Patch(examples, name, spec("b")) })
	each(settled)
	each(func(name string) { s.Delete(examples, name) })
	each(func(name string) { s.waitGone(examples, name) })
}
