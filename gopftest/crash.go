package gopftest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"gopf.dev/gopf"
)

// Life is what happens in a cluster while an operator serves it.
type Life struct {
	// Cluster makes the cluster, a new one for every run.
	Cluster func(testing.TB) *Cluster
	// Operator declares the operator, anew for every start.
	Operator func() *gopf.Operator
	// Live does what users do, and checks what has become of it. The operator is
	// running. It is called inside of a testing/synctest bubble: time.Sleep costs
	// nothing.
	Live func(testing.TB, *Cluster)
}

// CrashAtEveryWrite finds out whether anything is lost when the operator crashes:
// the life is lived once in peace, and then twice for each write that the operator
// makes in it: it crashes right before the write, or right after it without having
// seen the answer. Then it is started again.
func CrashAtEveryWrite(t *testing.T, life Life) {
	t.Helper()
	writes := 0
	alright := t.Run("in peace", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { writes = life.run(t, 0, false) })
	})
	if !alright {
		return // there is no sense in crashing what does not work
	}
	if writes == 0 {
		t.Error("the operator has written nothing: there is nothing to crash at")
	}
	for n := 1; n <= writes; n++ {
		for _, written := range []bool{false, true} {
			when := map[bool]string{false: "before", true: "after"}[written]
			t.Run(fmt.Sprintf("%s write %d", when, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { life.run(t, n, written) })
			})
		}
	}
}

// run lives the life with a crash at the n-th write; 0 for none. It returns how many
// there were.
func (life Life) run(t *testing.T, n int, written bool) (writes int) {
	t.Helper()
	c := life.Cluster(t)
	wire := &wire{next: c.Transport(), at: n, written: written, died: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	end := func() { stop(); running.Wait() }
	t.Cleanup(end)
	running.Go(func() {
		first, kill := context.WithCancel(ctx)
		defer kill()
		running.Go(func() {
			select {
			case <-wire.died:
				kill()
			case <-first.Done():
			}
		})
		life.operate(first, t, wire)
		if wire.isDead() && ctx.Err() == nil {
			life.operate(ctx, t, wire.next)
		}
	})
	life.Live(t, c)
	end()
	if n > 0 && !wire.isDead() {
		t.Errorf("there were only %d writes: the life is another one each time", wire.count())
	}
	return wire.count()
}

// operate runs one operator until the context is done.
func (life Life) operate(ctx context.Context, t *testing.T, reached http.RoundTripper) {
	cfg := (&Cluster{}).RESTConfig()
	cfg.Transport = reached
	if err := life.Operator().Run(ctx, gopf.Cluster(cfg), gopf.Log(logger(t))); err != nil {
		t.Errorf("the operator has failed: %v", err)
	}
}

// errDead is what an operator gets that has crashed.
var errDead = errors.New("gopftest: the operator has crashed")

// wire is how an operator reaches the cluster until it crashes.
type wire struct {
	next    http.RoundTripper
	at      int  // the write that it crashes at
	written bool // after it rather than before

	mu     sync.Mutex
	writes int
	dead   bool
	died   chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	fatal, dead := w.judge(r)
	switch {
	case dead:
		return nil, errDead
	case fatal:
		if w.written {
			if resp, err := w.next.RoundTrip(r); err == nil {
				_ = resp.Body.Close() // nobody is there to read it
			}
		}
		close(w.died)
		return nil, errDead
	}
	return w.next.RoundTrip(r)
}

// judge counts a request, and says whether the operator crashes with it, or has
// crashed before.
func (w *wire) judge(r *http.Request) (fatal, dead bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return false, true
	}
	// Reviews of permissions are asked by creating something that is not stored.
	question := strings.HasSuffix(r.URL.Path, "reviews")
	if !question && !slices.Contains([]string{http.MethodGet, http.MethodHead}, r.Method) {
		w.writes++
		w.dead = w.writes == w.at
	}
	return w.dead, false
}

func (w *wire) isDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}
