package lease

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gopf.dev/gopf/internal/test/fakeobject"
)

// server keeps leases in memory and may be unreliable, in virtual time.
type server struct {
	*fakeobject.Server
	packets sync.WaitGroup
}

func newServer(t *testing.T) *server {
	s := &server{Server: fakeobject.NewServer()}
	t.Cleanup(s.packets.Wait)
	return s
}

// way is the network between one elector and the server.
type way struct {
	*server
	mu    sync.Mutex
	fault func(*http.Request) fault // decides about a request
}

// set replaces the fault function.
func (w *way) set(f func(*http.Request) fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}

// fault is a network or server fault of one request. The zero value is no fault.
type fault struct {
	before, after time.Duration // delays of request and response
	drop, lose    bool          // the request is lost; the response is lost
	refuse        int           // the server responds with this code
}

var errReset = errors.New("connection reset by peer")

func (w *way) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	happens := w.fault
	w.mu.Unlock()
	var f fault
	if happens != nil {
		f = happens(req)
	}
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	answer := make(chan *http.Response, 1)
	w.packets.Go(func() { // a sent request arrives even if the sender no longer waits
		time.Sleep(f.before)
		var resp *http.Response
		switch {
		case f.drop:
		case f.refuse != 0:
			resp = fakeobject.Refuse(req, f.refuse)
		case req.Method == http.MethodPost && strings.Contains(req.URL.Path, "/nowhere/"):
			resp = fakeobject.Refuse(req, http.StatusNotFound)
		default:
			resp = w.Answer(req, body)
		}
		time.Sleep(f.after)
		if f.lose {
			resp = nil
		}
		answer <- resp
	})
	select {
	case <-req.Context().Done():
		return nil, req.Context().Err()
	case resp := <-answer:
		if resp == nil {
			return nil, errReset
		}
		return resp, nil
	}
}

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/op"

// edit changes the lease like another client.
func (s *server) edit(t *testing.T, patch string) {
	t.Helper()
	s.Merge(t, leasePath, patch)
}

// spec returns the current spec of the lease.
func (s *server) spec() map[string]any {
	spec, _ := s.Object(leasePath)["spec"].(map[string]any)
	return spec
}

// replica is an elector under test.
type replica struct {
	*Elector
	way   *way
	log   *fakeobject.Log
	stop  func() // and waits for it
	work  func(context.Context)
	terms []string // "3s" when it was elected, "9s lost", "9s done"
	mu    sync.Mutex
}

func (s *server) join(t *testing.T, identity string, adjust ...func(*replica)) *replica {
	t.Helper()
	r := &replica{way: &way{server: s}, log: newLog(), work: func(ctx context.Context) { <-ctx.Done() }}
	c := DefaultConfig(fakeobject.Client(t, r.way), "ns", "op", identity)
	c.Log = slog.New(r.log)
	var err error
	if r.Elector, err = New(c); err != nil {
		t.Fatal(err)
	}
	for _, a := range adjust {
		a(r)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	note := func(text string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.terms = append(r.terms, s.Second().String()+text)
	}
	go func() {
		defer close(done)
		r.Run(ctx, func(ctx context.Context) {
			note("")
			r.work(ctx)
			var lost *LostError
			if errors.As(context.Cause(ctx), &lost) {
				note(" lost")
				return
			}
			note(" done")
		})
	}()
	r.stop = func() { cancel(); <-done }
	t.Cleanup(r.stop)
	return r
}

func (r *replica) history() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.terms
}

func newLog() *fakeobject.Log { return &fakeobject.Log{Detail: "needed"} }

func (r *replica) leading() bool { return !r.Until().IsZero() }

// lockedSource makes a random source safe for concurrent use.
type lockedSource struct {
	mu     sync.Mutex
	source rand.Source
}

func (l *lockedSource) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.Uint64()
}
