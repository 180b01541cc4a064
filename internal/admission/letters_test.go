package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/handler"
)

// stalled is a request whose body never arrives.
type stalled struct {
	*httptest.ResponseRecorder
	mu       sync.Mutex
	deadline *time.Timer
	cut      chan struct{} // closed at the deadline
}

func (s *stalled) Read([]byte) (int, error) {
	<-s.cut
	return 0, os.ErrDeadlineExceeded
}

// SetReadDeadline is called by [http.ResponseController].
func (s *stalled) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deadline != nil {
		s.deadline.Stop()
	}
	if !t.IsZero() {
		s.deadline = time.AfterFunc(time.Until(t), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			select {
			case <-s.cut:
			default:
				close(s.cut)
			}
		})
	}
	return nil
}

// serveOrAbort calls the handler as an HTTP server does, which recovers from its aborts.
func serveOrAbort(v http.Handler, w http.ResponseWriter, r *http.Request) {
	defer func() {
		p := recover()
		if err, isError := p.(error); p != nil && !(isError && errors.Is(err, http.ErrAbortHandler)) {
			panic(p)
		}
	}()
	v.ServeHTTP(w, r)
}

// An HTTP/2 client can have 8 requests on each of 192 connections.
func TestAFloodOfRequestsDoesNotStallTheReviewsOfOtherPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTestReviewer(calling("v", handler.Admission{}, func(context.Context, *handler.Request) error { return nil }))
		v.inbox.most = 200 // thousands of goroutines crash the race detector
		ctx, cancel := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		for range 600 {
			flood.Go(func() {
				for ctx.Err() == nil {
					s := &stalled{ResponseRecorder: httptest.NewRecorder(), cut: make(chan struct{})}
					r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v", s)
					r.RemoteAddr, r.ContentLength = "10.0.0.1:1234", 4000
					serveOrAbort(v, s, r)
					time.Sleep(time.Second)
				}
			})
		}
		time.Sleep(3 * time.Second)
		for range 3 {
			began := time.Now()
			if code, text := ask(t, v, "/v", reviewOf("CREATE", nil)); code != http.StatusOK || time.Since(began) > 100*time.Millisecond {
				t.Errorf("a review of another peer got %d %s after %v", code, text, time.Since(began))
			}
		}
		cancel()
		flood.Wait()
		if len(v.inbox.letters)+len(v.inbox.peers)+v.inbox.live != 0 {
			t.Errorf("%d letters of %d peers are left, %d live", len(v.inbox.letters), len(v.inbox.peers), v.inbox.live)
		}
	})
}

// unread is the connection of a client that does not read the response.
type unread struct {
	*httptest.ResponseRecorder
	deadline context.Context
	expire   func()
}

func newUnread(ctx context.Context) *unread {
	ctx, expire := context.WithCancel(ctx)
	return &unread{httptest.NewRecorder(), ctx, expire}
}

func (u *unread) Write([]byte) (int, error) {
	<-u.deadline.Done()
	return 0, os.ErrDeadlineExceeded
}

// SetWriteDeadline is called by [http.ResponseController].
func (u *unread) SetWriteDeadline(t time.Time) error {
	time.AfterFunc(time.Until(t), u.expire)
	return nil
}

func TestUnreadResponsesTakeBoundedMemory(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	reviewed := func(text string) map[string]any {
		return map[string]any{"object": map[string]any{"metadata": map[string]any{"name": "x"}, "spec": text}}
	}
	for name, fields := range map[string]map[string]any{"a long uid": {"uid": long}, "a long patch": reviewed(long)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newTestReviewer(calling("v", handler.Admission{Mutating: true}, func(_ context.Context, r *handler.Request) error {
					if spec, ok := r.Body.Lookup("spec"); ok {
						r.Patch.Set(spec, "copy")
					}
					return nil
				}))
				raw := mustJSON(reviewOf("CREATE", fields))
				ctx, cancel := context.WithCancel(t.Context())
				before := inUse()
				var clients sync.WaitGroup
				for range 100 {
					clients.Go(func() {
						u := newUnread(ctx)
						r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v", bytes.NewReader(raw))
						r.RemoteAddr = "10.0.0.9:1234" // not that of the other client below
						serveOrAbort(v, u, r)
					})
				}
				synctest.Wait()
				if grown := int64(inUse()) - int64(before); grown > 192<<20 {
					t.Errorf("100 unread responses take %d MiB", grown>>20)
				}
				began := time.Now()
				code, text := ask(t, v, "/v", reviewOf("CREATE", reviewed(long[:1<<20])))
				if code != http.StatusOK || len(text) < 1<<20 || time.Since(began) > 20*time.Second {
					t.Errorf("a long response to another client: %d, %d bytes after %v", code, len(text), time.Since(began))
				}
				cancel()
				clients.Wait()
			})
		})
	}
}

// inUse returns the size of the heap without garbage.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// Such requests count as ended, but each takes memory until its response is sent.
func TestRequestsBeyondTheLimitAreAbortedIfClientsDoNotReadTheRefusals(t *testing.T) {
	for name, peers := range map[string]int{"refused": 1, "dropped": 2} {
		t.Run(name, func(t *testing.T) {
			b := newInbox(1 << 20)
			b.most = 10
			var open []*letter
			aborted := 0
			for i := range 10 * maxLeaving {
				r := httptest.NewRequest(http.MethodPost, "/v", nil)
				r.RemoteAddr = fmt.Sprintf("10.0.0.%d:1234", i%peers)
				u := newUnread(t.Context())
				l := b.open(r, func() {}, http.NewResponseController(u), time.Second)
				if l == nil {
					aborted++
					continue
				}
				open = append(open, l)
			}
			if most := b.most + maxLeaving; len(open) > most {
				t.Errorf("%d requests are open, more than %d", len(open), most)
			}
			if aborted == 0 {
				t.Error("no request was aborted")
			}
			for _, l := range open {
				b.close(l)
			}
			if len(b.letters)+len(b.peers)+b.live > 0 {
				t.Errorf("%d letters, %d peers and %d live letters are left", len(b.letters), len(b.peers), b.live)
			}
		})
	}
}
