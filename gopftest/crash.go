package gopftest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/engine"
)

// Life is a scenario for [CrashAtEveryWrite]: a cluster, an operator, and users.
type Life struct {
	// Cluster returns a new cluster. It is called for every run.
	Cluster func(testing.TB) *Cluster
	// Operator declares the operator. It is called for every start of the operator.
	Operator func() *gopf.Operator
	// Live does what users do and checks the outcome, while the operator is running.
	// [CrashAtEveryWrite] runs it inside a testing/synctest bubble, where time.Sleep takes
	// no real time.
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
		synctest.Test(t, func(t *testing.T) { writes = len(life.Run(t, Crash{})) })
	})
	if !alright {
		return // the scenario itself fails; crashes would only repeat the failure
	}
	if writes == 0 {
		t.Error("the operator wrote nothing, so there is no write to crash at")
	}
	for n := 1; n <= writes; n++ {
		for _, after := range []bool{false, true} {
			at := Crash{Write: n, After: after}
			t.Run(at.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					made := life.Run(t, at)
					if len(made) < n {
						t.Errorf("the operator made only %d writes; the scenario must make the same writes in every run", len(made))
					} else if t.Failed() {
						t.Logf("write %d is %s", n, made[n-1])
					}
				})
			})
		}
	}
}

// Crash is the moment in which the operator of a [Life] crashes. The zero value means that it
// does not crash.
type Crash struct {
	// Write is the number of the write, from 1. 0 means no crash.
	Write int
	// After means a crash right after the write, before the response arrives, instead of right
	// before the write.
	After bool
}

// String returns the moment as text, such as "before write 2".
func (c Crash) String() string {
	switch {
	case c.Write == 0:
		return "without a crash"
	case c.After:
		return fmt.Sprintf("after write %d", c.Write)
	}
	return fmt.Sprintf("before write %d", c.Write)
}

// Run runs the scenario once, with a crash at the given moment. It returns the operator's
// writes until the crash, or all of them: the method and the path of each. If the last one has
// a lower number than the crash, there was no crash. Unlike [CrashAtEveryWrite], Run does not
// start a testing/synctest bubble.
func (life Life) Run(t testing.TB, at Crash) (writes []string) {
	t.Helper()
	c, log := life.Cluster(t), logger(t)
	wire := &wire{next: c.Transport(), at: at.Write, written: at.After, died: make(chan struct{})}
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
		life.operate(first, t, c, wire, log)
		if wire.isDead() && ctx.Err() == nil {
			life.operate(ctx, t, c, wire.next, log)
		}
	})
	life.Live(t, c)
	end()
	return wire.made()
}

// operate runs one operator until the context is done.
func (life Life) operate(ctx context.Context, t testing.TB, c *Cluster, reached http.RoundTripper, log *slog.Logger) {
	cfg := c.RESTConfig()
	cfg.Transport = reached
	reviews := gopf.TestSeam{}.Webhooks(engine.Substitute{Server: c.webhookServer})
	if err := life.Operator().Run(ctx, gopf.Cluster(cfg), gopf.Log(log), reviews); err != nil {
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
	writes []string
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
		w.writes = append(w.writes, r.Method+" "+r.URL.Path)
		w.dead = len(w.writes) == w.at
	}
	return w.dead, false
}

func (w *wire) isDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// made returns the writes so far.
func (w *wire) made() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes)
}
