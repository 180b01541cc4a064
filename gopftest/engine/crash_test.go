package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// mishap is what happens to a write.
type mishap string

const (
	crashBefore mishap = "killed before"
	crashAfter  mishap = "killed after"
	answerLost  mishap = "answer lost"
)

// wire is an operator's connection to the cluster, on which something happens
// at one of its writes.
type wire struct {
	next http.RoundTripper
	kill func()

	mu     sync.Mutex
	writes int
	at     int // the write that something happens to; 0 for none
	mishap mishap
	dead   bool
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "reviews") { // questions store nothing
		if w.isDead() {
			return nil, &net.OpError{Op: "dial", Err: errors.New("the process is dead")}
		}
		return w.next.RoundTrip(r)
	}
	switch w.fate() {
	case "dead":
		return nil, &net.OpError{Op: "dial", Err: errors.New("the process is dead")}
	case crashBefore:
		w.kill()
		return nil, &net.OpError{Op: "dial", Err: errors.New("the process is dead")}
	case crashAfter:
		if resp, err := w.next.RoundTrip(r); err == nil {
			resp.Body.Close()
		}
		w.kill()
		return nil, errors.New("the process is dead")
	case answerLost:
		if resp, err := w.next.RoundTrip(r); err == nil {
			resp.Body.Close()
		}
		return nil, errors.New("the connection is broken")
	}
	return w.next.RoundTrip(r)
}

func (w *wire) isDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// fate counts a write and tells what happens to it.
func (w *wire) fate() mishap {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return "dead"
	}
	w.writes++
	if w.writes != w.at {
		return ""
	}
	w.dead = w.mishap != answerLost
	return w.mishap
}

// story is what was seen of the reference life.
type story struct {
	writes    int
	successes map[string]int
	phases    []string // the object at the end of each
}

// live lets an object live through creation, update and deletion under an
// operator that is restarted whenever it dies.
func live(t *testing.T, c *gopftest.Cluster, at int, what mishap) story {
	s := story{successes: map[string]int{}}
	var mu sync.Mutex
	done := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		s.successes[name]++
	}
	declare := func() *gopf.Operator {
		op := gopf.New()
		kex := gopf.For[*Example](op, resource)
		kex.OnCreate("create_a", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.SetResult(map[string]string{"message": "made " + ch.Object.Spec.Field})
			done("create_a")
			return nil
		})
		kex.OnCreate("create_b", func(_ context.Context, ch *gopf.Change[*Example]) error {
			if ch.Retry == 0 {
				return gopf.RetryAfter(time.Second, errors.New("not yet"))
			}
			done("create_b")
			return nil
		})
		kex.OnUpdate("update", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.Patch.Status(map[string]string{"field": ch.Object.Spec.Field})
			done("update " + ch.Object.Spec.Field)
			return nil
		})
		kex.OnDelete("delete", func(context.Context, *gopf.Change[*Example]) error {
			done("delete")
			return nil
		})
		return op
	}

	w := &wire{next: c.Transport(), at: at, mishap: what}
	ctx, end := context.WithCancel(context.Background())
	var supervisor sync.WaitGroup
	supervisor.Go(func() {
		for ctx.Err() == nil {
			life, kill := context.WithCancel(ctx)
			w.mu.Lock()
			w.dead, w.kill = false, kill
			w.mu.Unlock()
			cfg := c.RESTConfig()
			cfg.Transport = w
			if err := declare().Run(life, gopf.Cluster(cfg), gopf.Log(testLog(t))); err != nil && life.Err() == nil {
				t.Errorf("the operator has failed: %v", err)
			}
			kill()
		}
	})
	defer func() { end(); supervisor.Wait() }()
	look := func() {
		time.Sleep(3 * time.Minute)
		obj, exists := c.Lookup(t, resource, "default", "x")
		if !exists {
			s.phases = append(s.phases, "gone")
			return
		}
		annotations := obj.GetAnnotations()
		if hash, ok := strings.CutPrefix(annotations[bound], string(obj.GetUID())); ok {
			annotations[bound] = "uid" + hash
		}
		s.phases = append(s.phases, fmt.Sprint(obj.GetFinalizers(), annotations, obj.Object["status"]))
	}

	time.Sleep(time.Second)
	c.Create(t, example("x", "v1"))
	look()
	c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "v2"}})
	look()
	c.Delete(t, resource, "default", "x")
	look()
	w.mu.Lock()
	defer w.mu.Unlock()
	s.writes = w.writes
	return s
}

func TestNothingIsLostOrRepeatedWhateverHappensToAnyWrite(t *testing.T) {
	var undisturbed story
	bubble(t, func(t *testing.T, c *gopftest.Cluster) { undisturbed = live(t, c, 0, "") })
	if want := map[string]int{"create_a": 1, "create_b": 1, "update v2": 1, "delete": 1}; !maps.Equal(undisturbed.successes, want) {
		t.Fatalf("undisturbed: got %v, want %v", undisturbed.successes, want)
	}
	if undisturbed.phases[2] != "gone" || !strings.Contains(undisturbed.phases[0], "made v1") {
		t.Fatalf("undisturbed: %q", undisturbed.phases)
	}
	t.Logf("the undisturbed life takes %d writes", undisturbed.writes)
	for _, what := range []mishap{crashBefore, crashAfter, answerLost} {
		for at := 1; at <= undisturbed.writes; at++ {
			t.Run(fmt.Sprintf("%s write %d", what, at), func(t *testing.T) {
				bubble(t, func(t *testing.T, c *gopftest.Cluster) {
					got := live(t, c, at, what)
					if diff := cmp.Diff(undisturbed.phases, got.phases); diff != "" {
						t.Errorf("the object: -undisturbed +got\n%s", diff)
					}
					checkRepeats(t, what, undisturbed.successes, got.successes)
				})
			})
		}
	}
}

// checkRepeats allows one handler to be called again if its success could not
// be recorded before the process died, and nothing else.
func checkRepeats(t *testing.T, what mishap, want, got map[string]int) {
	t.Helper()
	repeated := 0
	for name, n := range want {
		if got[name] < n {
			t.Errorf("%s was called %d times, want %d", name, got[name], n)
		}
		repeated += max(0, got[name]-n)
	}
	allowed := 0
	if what != answerLost {
		allowed = 1
	}
	if repeated > allowed || !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))) {
		t.Errorf("successes: got %v, want %v with at most %d repeated", got, want, allowed)
	}
}
