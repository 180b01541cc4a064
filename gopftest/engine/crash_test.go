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
	"gopf.dev/gopf/storage"
)

// mishap is a fault at a write.
type mishap string

const (
	crashBefore mishap = "killed before"
	crashAfter  mishap = "killed after"
	answerLost  mishap = "answer lost"
)

// wire is an operator's connection to the cluster, with a mishap at one of its writes.
type wire struct {
	next http.RoundTripper
	kill func()

	mu     sync.Mutex
	writes int
	at     int // the number of the write; 0 means no mishap
	mishap mishap
	dead   bool

	finished int  // handlers finished since the last write
	first    bool // the mishap was at the first write after a handler finished
}

// finish records that a handler finishes.
func (w *wire) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finished++
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "reviews") { // access reviews store nothing
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

// fate counts a write and returns what happens to it.
func (w *wire) fate() mishap {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return "dead"
	}
	w.writes++
	unwritten := w.finished
	w.finished = 0
	if w.writes != w.at {
		return ""
	}
	w.first = unwritten > 0
	w.dead = w.mishap != answerLost
	return w.mishap
}

// story is the observed course of the reference life.
type story struct {
	writes    int
	first     bool // see wire
	successes map[string]int
	keys      map[string]map[string]bool // keys of the successful calls
	phases    []string                   // the object at the end of each phase
}

// placement is the storage of the operator's state.
type placement struct {
	name   string
	choose func(*gopf.PersistenceSettings)
	strict bool // a crash after the first write of a turn repeats no handler
	always bool // a crash at any write to the object repeats no handler
}

var placements = []placement{
	{name: "annotations", choose: func(*gopf.PersistenceSettings) {}},
	{name: "status", strict: true, choose: func(p *gopf.PersistenceSettings) {
		p.Progress, p.Base = storage.NewStatusProgress("op"), storage.NewStatusBase("op")
	}},
	{name: "state in the status", strict: true, choose: func(p *gopf.PersistenceSettings) { *p = gopf.StateInStatus("op") }},
	{name: "progress in the status", strict: true, choose: func(p *gopf.PersistenceSettings) {
		p.Progress = storage.NewStatusProgress("op")
	}},
}

// elsewherePlacement keeps the state in memory that outlives the operator.
func elsewherePlacement() placement {
	e := newElsewhere()
	return placement{name: "elsewhere", always: true, choose: func(p *gopf.PersistenceSettings) {
		p.Progress, p.Base = elsewhereProgress{e}, elsewhereBase{e}
	}}
}

// reference declares the operator of the reference life: results, retries, sub-handlers,
// changes of the status and of the rest of the object, and edits.
func reference(done func(name, key string)) *gopf.Operator {
	op := gopf.New()
	kex := gopf.For[*Example](op, resource)
	kex.OnCreate("create_a", func(_ context.Context, ch *gopf.Change[*Example]) error {
		ch.SetResult(map[string]string{"message": "made " + ch.Object.Spec.Field})
		ch.Patch.Label("made", "yes")
		done("create_a", ch.Key())
		return nil
	})
	kex.OnCreate("create_b", func(_ context.Context, ch *gopf.Change[*Example]) error {
		if ch.Retry == 0 {
			return gopf.RetryAfter(time.Second, errors.New("not yet"))
		}
		done("create_b", ch.Key())
		return nil
	})
	kex.OnUpdate("update", func(_ context.Context, ch *gopf.Change[*Example]) error {
		ch.Patch.MergeStatus(map[string]string{"field": ch.Object.Spec.Field})
		ch.Sub("label", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.Patch.Edit(func(o *Example) {
				o.Labels["field"] = o.Spec.Field
				o.Status["edited"] = true
			})
			done("label "+ch.Object.Spec.Field, ch.Key())
			return nil
		})
		done("update "+ch.Object.Spec.Field, ch.Key())
		return nil
	})
	kex.OnDelete("delete", func(_ context.Context, ch *gopf.Change[*Example]) error {
		ch.SetResult("gone")
		ch.Patch.Annotate("last", "words")
		done("delete", ch.Key())
		return nil
	})
	return op
}

// live takes an object through creation, update and deletion. The operator is restarted
// whenever it crashes.
func live(t *testing.T, c *gopftest.Cluster, where placement, at int, what mishap) story {
	s := story{successes: map[string]int{}, keys: map[string]map[string]bool{}}
	w := &wire{next: c.Transport(), at: at, mishap: what}
	var mu sync.Mutex
	done := func(name, key string) {
		w.finish()
		mu.Lock()
		defer mu.Unlock()
		s.successes[name]++
		if s.keys[name] == nil {
			s.keys[name] = map[string]bool{}
		}
		s.keys[name][key] = true
	}
	declare := func() *gopf.Operator {
		op := reference(done)
		where.choose(&op.Settings.Persistence)
		return op
	}
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
				t.Errorf("the operator failed: %v", err)
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
	s.writes, s.first = w.writes, w.first
	return s
}

func TestNothingIsLostOrRepeatedWhateverHappensToAnyWrite(t *testing.T) {
	for _, where := range placements {
		t.Run(where.name, func(t *testing.T) { sweep(t, func() placement { return where }) })
	}
	t.Run("elsewhere", func(t *testing.T) { sweep(t, elsewherePlacement) })
}

// sweep applies each mishap to each write of the reference life.
func sweep(t *testing.T, choose func() placement) {
	var undisturbed story
	bubble(t, func(t *testing.T, c *gopftest.Cluster) { undisturbed = live(t, c, choose(), 0, "") })
	want := map[string]int{"create_a": 1, "create_b": 1, "update v2": 2, "label v2": 2, "delete": 1}
	if !maps.Equal(undisturbed.successes, want) {
		t.Fatalf("undisturbed: got %v, want %v", undisturbed.successes, want)
	}
	if undisturbed.phases[2] != "gone" || !strings.Contains(undisturbed.phases[0], "made v1") {
		t.Fatalf("undisturbed: %q", undisturbed.phases)
	}
	t.Logf("the undisturbed life takes %d writes", undisturbed.writes)
	for _, what := range []mishap{crashBefore, crashAfter, answerLost} {
		for at := 1; at <= undisturbed.writes; at++ {
			t.Run(fmt.Sprintf("%s write %d", what, at), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, c *gopftest.Cluster) {
					where := choose()
					got := live(t, c, where, at, what)
					if diff := cmp.Diff(undisturbed.phases, got.phases); diff != "" {
						t.Errorf("the object: -undisturbed +got\n%s", diff)
					}
					allowed := 0
					switch {
					case what == answerLost || where.always:
					case where.strict && (what == crashAfter || !got.first):
					default:
						allowed = 1 // plus its sub-handlers
					}
					checkRepeats(t, allowed, undisturbed, got)
				})
			})
		}
	}
}

// checkRepeats checks that at most so many handlers are called again, each with the same
// key as before.
func checkRepeats(t *testing.T, allowed int, want, got story) {
	t.Helper()
	repeated := 0
	for name, n := range want.successes {
		if got.successes[name] < n {
			t.Errorf("%s was called %d times, want %d", name, got.successes[name], n)
		}
		if len(got.keys[name]) != len(want.keys[name]) {
			t.Errorf("%s was called with %d keys, want %d", name, len(got.keys[name]), len(want.keys[name]))
		}
		if !strings.HasPrefix(name, "update") || allowed == 0 { // a parent is repeated with its sub-handler
			repeated += max(0, got.successes[name]-n)
		}
	}
	if repeated > allowed || !slices.Equal(slices.Sorted(maps.Keys(want.successes)), slices.Sorted(maps.Keys(got.successes))) {
		t.Errorf("successes: got %v, want %v with at most %d repeated", got.successes, want.successes, allowed)
	}
}
