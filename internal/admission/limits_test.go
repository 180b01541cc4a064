package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/webhook"
)

// listener is a running webhook server.
type listener struct {
	URL, address string
	trust        *tls.Config
}

// listening starts an HTTPS server with the reviewer.
func listening(t *testing.T, v *Reviewer) listener {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	announced, ended := make(chan webhook.ClientConfig, 1), make(chan error, 1)
	server := webhook.Local{Addr: "127.0.0.1"}.Bind(webhook.Environment{Log: discard()})
	go func() { ended <- server.Serve(ctx, v, func(c webhook.ClientConfig) { announced <- c }) }()
	t.Cleanup(func() {
		cancel()
		<-ended // connections of the test may still be open
	})
	c := <-announced
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CABundle)
	return listener{c.URL, strings.TrimPrefix(c.URL, "https://"), &tls.Config{RootCAs: roots}}
}

// client sends reviews as an API server does: over one connection.
func (l listener) client() *http.Client {
	return &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: l.trust.Clone()}}
}

// slowly opens a connection that announces a review but sends only the beginning.
func slowly(t *testing.T, server listener, announced, sent int) net.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", server.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() { // the server may not read all of it
		fmt.Fprintf(conn, "POST /v HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", announced, strings.Repeat(" ", sent))
	}()
	return conn
}

func TestSlowConnectionsDoNotStallReviews(t *testing.T) {
	for name, c := range map[string]struct{ connections, sent int }{
		"few bytes":             {64, 1},
		"almost a whole review": {64, 4<<20 - 1},
		"many connections":      {512, 100 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			v := newTestReviewer(validating("v", "kopfexamples", handler.Admission{}))
			v.ReadTimeout = time.Minute // the time of a stalled review
			server := listening(t, v)
			for range c.connections {
				slowly(t, server, 4<<20, c.sent)
			}
			for until := time.Now().Add(5 * time.Second); v.Load().Receiving+v.Load().Waiting < c.connections/8 && time.Now().Before(until); {
				time.Sleep(time.Millisecond)
			}
			raw, err := json.Marshal(reviewOf("CREATE", nil))
			if err != nil {
				t.Fatal(err)
			}
			client := server.client()
			for range 5 {
				// On a busy machine, the flood of data alone can delay a handshake until the server
				// closes the connection. What must not happen is that reviews wait for slow ones.
				began, answered := time.Now(), 0
				for ; answered != http.StatusOK && time.Since(began) < v.ReadTimeout/2; time.Sleep(10 * time.Millisecond) {
					resp, err := client.Post(server.URL+"/v", "application/json", bytes.NewReader(raw))
					if err != nil {
						t.Log(err)
						continue
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					answered = resp.StatusCode
				}
				if took := time.Since(began); took > v.ReadTimeout/2 {
					t.Errorf("status %d after %v with %+v", answered, took, v.Load())
				}
			}
		})
	}
}

func TestSlowBodiesTimeOut(t *testing.T) {
	v := newTestReviewer(validating("v", "kopfexamples", handler.Admission{}))
	v.ReadTimeout = 100 * time.Millisecond
	server := listening(t, v)
	conn := slowly(t, server, 1000, 10)
	answer, _ := io.ReadAll(conn)
	if !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
		t.Errorf("got %q", answer)
	}
}

// The deadline for the body must not cancel the request while the handler runs.
func TestHandlersMayTakeLongerThanTheBody(t *testing.T) {
	v := newTestReviewer(calling("v", handler.Admission{}, func(ctx context.Context, _ *handler.Request) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(300 * time.Millisecond):
			return nil
		}
	}))
	v.ReadTimeout = 100 * time.Millisecond
	server := listening(t, v)
	raw, err := json.Marshal(reviewOf("CREATE", nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range []*http.Client{server.client(), {Transport: &http.Transport{TLSClientConfig: server.trust.Clone()}}} {
		resp, err := client.Post(server.URL+"/v", "application/json", bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(text), `"allowed":true`) {
			t.Errorf("%s: %s", resp.Proto, text)
		}
		client.CloseIdleConnections()
	}
}

// The worst JSON for its size is a list of small objects.
func TestLargeReviewsTakeBoundedMemory(t *testing.T) {
	for name, c := range map[string]struct {
		item    string
		reviews int
	}{"of text": {`"` + strings.Repeat("x", 1000) + `"`, 32}, "of small objects": {`{"a":1,"some":"` + strings.Repeat("x", 60) + `"}`, 5}} {
		t.Run(name, func(t *testing.T) {
			const size, bound = 3 << 20, 512 << 20
			var handled atomic.Int32
			v := newTestReviewer(calling("v", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
				handled.Add(1)
				_ = r.Review.Diff()               // decodes both objects
				time.Sleep(20 * time.Millisecond) // keeps the memory in use
				return nil
			}))
			server := listening(t, v)
			items := "[" + strings.TrimSuffix(strings.Repeat(c.item+",", (size-2000)/(len(c.item)+1)), ",") + "]"
			raw, err := json.Marshal(reviewOf("CREATE", map[string]any{"object": map[string]any{
				"metadata": map[string]any{"name": "x"}, "spec": json.RawMessage(items),
			}}))
			if err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			peak := uint64(0)
			done := make(chan struct{})
			var clients, meter sync.WaitGroup
			meter.Go(func() {
				for {
					runtime.ReadMemStats(&now)
					peak = max(peak, now.HeapInuse-min(now.HeapInuse, before.HeapInuse))
					select {
					case <-done:
						return
					case <-time.After(5 * time.Millisecond):
					}
				}
			})
			client := server.client()
			for range c.reviews {
				clients.Go(func() {
					resp, err := client.Post(server.URL+"/v", "application/json", bytes.NewReader(raw))
					if err != nil {
						t.Error(err)
						return
					}
					text, _ := io.ReadAll(resp.Body)
					resp.Body.Close()
					// On a busy machine, bodies may arrive so slowly that they are dropped.
					slow := resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusRequestTimeout
					if !strings.Contains(string(text), `"allowed":true`) && !slow {
						t.Errorf("%s %.200s", resp.Status, text)
					}
				})
			}
			clients.Wait()
			close(done)
			meter.Wait()
			t.Logf("%d reviews of %d bytes took %d MiB", handled.Load(), len(raw), peak>>20)
			if peak > bound || handled.Load() == 0 {
				t.Errorf("%d MiB", peak>>20)
			}
		})
	}
}

func TestABurstOfLargeReviewsIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var most atomic.Int64
		var v *Reviewer
		v = newTestReviewer(calling("v", handler.Admission{}, func(context.Context, *handler.Request) error {
			most.Store(max(most.Load(), v.Load().Bytes))
			time.Sleep(time.Second)
			return nil
		}))
		review, err := json.Marshal(reviewOf("CREATE", map[string]any{"object": map[string]any{
			"metadata": map[string]any{"name": "x"}, "spec": strings.Repeat("x", 3<<20),
		}}))
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				if code, text := ask(t, v, "/v", string(review)); code != http.StatusOK {
					t.Errorf("%d %s", code, text)
				}
			})
		}
		all.Wait()
		if got := most.Load(); got < 10<<20 || got > v.Bytes {
			t.Errorf("%d MiB at the same time", got>>20)
		}
	})
}

func TestLoadReportsWaitingReviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTestReviewer(calling("v", handler.Admission{}, func(context.Context, *handler.Request) error {
			time.Sleep(10 * time.Second)
			return nil
		}))
		v.lanes.slots.size = 1
		if load := v.Load(); load != (Load{}) {
			t.Errorf("idle: %+v", load)
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { ask(t, v, "/v", reviewOf("CREATE", nil)) })
		}
		time.Sleep(3 * time.Second)
		if load := v.Load(); load.Waiting != 2 || load.InFlight != 1 || time.Since(load.Since) != 3*time.Second || load.Bytes == 0 {
			t.Errorf("busy: %+v", load)
		}
		all.Wait()
		if load := v.Load(); load != (Load{}) {
			t.Errorf("idle again: %+v", load)
		}
	})
}

func TestOrdinaryReviewsDoNotWaitForCostlyOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTestReviewer(calling("v", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
			if r.Review.DryRun {
				time.Sleep(10 * time.Second)
			}
			return nil
		}))
		const costly = 8
		wide := make([]any, 50_000)
		for i := range wide {
			wide[i] = map[string]any{"a": "twenty characters..."}
		}
		var all sync.WaitGroup
		defer all.Wait()
		for range costly {
			all.Go(func() {
				ask(t, v, "/v", reviewOf("CREATE", map[string]any{"dryRun": true, "object": map[string]any{"metadata": map[string]any{"name": "x"}, "spec": wide}}))
			})
		}
		time.Sleep(time.Second)
		began := time.Now()
		if out := answered(t, v, "/v", reviewOf("CREATE", nil)); !out.Response.Allowed || time.Since(began) > 0 {
			t.Errorf("got %+v after %v", out.Response, time.Since(began))
		}
		if load := v.Load(); load.InFlight+load.Waiting != costly || load.Waiting == 0 {
			t.Errorf("%+v, want some of the costly reviews to wait", load)
		}
	})
}

// Any client can send a review with a name of megabytes, which handlers' log lines contain.
func TestLongNamesInReviewsAreCutInTheLog(t *testing.T) {
	v := newTestReviewer(calling("v", handler.Admission{}, func(context.Context, *handler.Request) error {
		return &handler.DeniedError{Err: errors.New("no")}
	}))
	var out bytes.Buffer
	v.Log = slog.New(slog.NewTextHandler(&out, nil))
	long := strings.Repeat("x", 1<<20)
	review := reviewOf("CREATE", map[string]any{
		"name": long, "namespace": long, "object": map[string]any{"metadata": map[string]any{"name": "x", "uid": long}},
	})
	if answered(t, v, "/v", review).Response.Allowed || out.Len() == 0 || out.Len() > 4<<10 {
		t.Errorf("logged %d bytes: %.300s", out.Len(), out.String())
	}
}

// Any client that reaches the server can send reviews as fast as it likes.
func TestLinesAboutReviewsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTestReviewer(calling("v", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
			if r.Body.Name == "bad" {
				return errors.New("no")
			}
			return nil
		}))
		var out bytes.Buffer
		v.Log = slog.New(slog.NewTextHandler(&out, nil))
		for _, name := range []string{"fine", "bad"} {
			for range 2000 {
				ask(t, v, "/v", reviewOf("CREATE", map[string]any{"object": map[string]any{"metadata": map[string]any{"name": name}}}))
			}
			if n := strings.Count(out.String(), "\n"); n < 100 || n > 1000 {
				t.Errorf("%d lines about 2000 reviews", n)
			}
			out.Reset()
		}
		time.Sleep(time.Minute)
		if ask(t, v, "/v", reviewOf("CREATE", nil)); !strings.Contains(out.String(), "suppressed=1500") {
			t.Errorf("got %s", out.String())
		}
	})
}

// One client sends many reviews whose handlers are slow. The reviews of the API server
// must find room for their bodies and a slot nevertheless.
func TestAFloodOfOneClientDoesNotDelayTheReviewsOfOthers(t *testing.T) {
	for name, padding := range map[string]int{"short reviews": 0, "longer reviews": 60_000, "large reviews": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newTestReviewer(calling("v", handler.Admission{}, func(ctx context.Context, r *handler.Request) error {
					if r.Body.Name == "slow" {
						<-ctx.Done()
					}
					return nil
				}))
				send := func(peer, name string) int {
					raw, err := json.Marshal(reviewOf("CREATE", map[string]any{"object": map[string]any{
						"metadata": map[string]any{"name": name}, "spec": strings.Repeat("x", padding),
					}}))
					if err != nil {
						t.Error(err)
					}
					r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v", bytes.NewReader(raw))
					r.RemoteAddr = peer + ":1"
					w := httptest.NewRecorder()
					serveOrAbort(v, w, r)
					return w.Code
				}
				var flood sync.WaitGroup
				for range 500 {
					flood.Go(func() { send("10.0.0.1", "slow") })
				}
				synctest.Wait()
				began := time.Now()
				for range 10 {
					if code := send("10.0.0.2", "x"); code != http.StatusOK || time.Since(began) > 0 {
						t.Errorf("got %d after %v", code, time.Since(began))
					}
				}
				flood.Wait()
			})
		})
	}
}
