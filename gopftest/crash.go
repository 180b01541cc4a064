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

// Life is a scenario for [CrashAtEveryWrite]: a cluster, an operator, and users.
type Life struct {
	// Cluster returns a new cluster. It is called for every run.
	Cluster func(testing.TB) *Cluster
	// Operator declares the operator. It is called for every start of the operator.
	Operator func() *gopf.Operator
	// Live does what users do and checks the outcome, while the operator is running.
	// It runs inside a testing/synctest bubble, where time.Sleep takes no real time.
	Live func(testing.TB, *Cluster)
}

// CrashAtEveryWrite checks that the operator loses nothing when it crashes. It runs the
// scenario once without a crash, to count the operator's writes. Then it runs it twice
// for each write: with a crash right before the write, and with a crash right after it,
// before the response arrives. After a crash, the operator starts again.
func CrashAtEveryWrite(t *testing.T, life Life) {
	t.Helper()
	writes := 0
	alright := t.Run("without a crash", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { writes = life.run(t, 0, false) })
	})
	if !alright {
		return // the scenario itself fails; crashes would only repeat the failure
	}
	if writes == 0 {
		t.Error("the operator wrote nothing, so there is no write to crash at")
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

// run executes the scenario with a crash at the n-th write, 0 for no crash. It returns
// the number of writes.
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
		t.Errorf("the operator made only %d writes; the scenario must make the same writes in every run", wire.count())
	}
	return wire.count()
}

// operate runs one operator until the context is done.
func (life Life) operate(ctx context.Context, t *testing.T, reached http.RoundTripper) {
	cfg := (&Cluster{}).RESTConfig()
	cfg.Transport = reached
	if err := life.Operator().Run(ctx, gopf.Cluster(cfg), gopf.Log(logger(t))); err != nil {
		t.Errorf("the operator failed: %v", err)
	}
}

// errDead is the error of all requests after the crash.
var errDead = errors.New("gopftest: the operator crashed")

// wire is the transport of an operator that crashes at a given write.
type wire struct {
	next    http.RoundTripper
	at      int  // number of the write to crash at
	written bool // crash after the write instead of before

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
				_ = resp.Body.Close() // the crashed operator never reads it
			}
		}
		close(w.died)
		return nil, errDead
	}
	return w.next.RoundTrip(r)
}

// judge counts a request. fatal means that the operator crashes at this request, dead
// that it crashed earlier.
func (w *wire) judge(r *http.Request) (fatal, dead bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return false, true
	}
	// Access reviews are POST requests, but they store nothing.
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
