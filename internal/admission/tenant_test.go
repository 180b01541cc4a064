package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
)

// crowd sends reviews to a reviewer of an operator with 256 MiB. Those of objects with the name
// "slow" take a second.
type crowd struct {
	t *testing.T
	v *Reviewer
}

func newCrowd(t *testing.T) *crowd {
	o := DefaultReviewerOptions()
	o.LimitMemory(256 << 20)
	o.Log = slog.New(slog.DiscardHandler)
	v := NewReviewer(handler.Set{calling("v", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
		if r.Body.Name == "slow" {
			time.Sleep(time.Second)
		}
		return nil
	})}, o)
	v.Discovered([]kind.Info{examples, configMaps})
	t.Cleanup(func() { v.Wait(context.Background()) }) // for handlers of canceled reviews
	return &crowd{t, v}
}

// review returns a review of an object as JSON.
func (c *crowd) review(namespace, name string, spec any) []byte {
	raw, err := json.Marshal(reviewOf("CREATE", map[string]any{"namespace": namespace, "object": map[string]any{
		"metadata": map[string]any{"name": name, "namespace": namespace}, "spec": spec,
	}}))
	if err != nil {
		c.t.Error(err)
	}
	return raw
}

// send sends a review and returns the status of the response and the time that it took.
func (c *crowd) send(ctx context.Context, peer string, raw []byte) (int, time.Duration) {
	began := time.Now()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v?timeout=10s", bytes.NewReader(raw))
	r.RemoteAddr = peer + ":1"
	w := httptest.NewRecorder()
	serveOrAbort(c.v, w, r)
	return w.Code, time.Since(began)
}

// flood sends n reviews at a time, again and again. stop ends that.
func (c *crowd) flood(n int, peer string, raw []byte) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				c.send(ctx, peer, raw)
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// values returns about so many bytes of costly JSON.
func values(size int) json.RawMessage {
	return json.RawMessage("[" + strings.Repeat(`{"a":1},`, size/8) + "0]")
}

// A tenant keeps many requests to the API server open, such as dry runs of its own objects. The
// reviews of all tenants come from the address of the API server.
func TestAFloodOfOneTenantDoesNotDelayTheReviewsOfOthers(t *testing.T) {
	for name, flood := range map[string]struct {
		n    int
		spec any
	}{
		"short texts with braces": {240, strings.Repeat("{", 60_000)},
		"long texts with braces":  {90, strings.Repeat("{", 1_000_000)},
		"short values":            {240, values(60_000)},
		"longer values":           {90, values(200_000)},
		"values and a long text":  {90, map[string]any{"text": strings.Repeat("x", 800_000), "values": values(200_000)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t)
				stop := c.flood(flood.n, "10.0.0.1", c.review("attacker", "slow", flood.spec))
				time.Sleep(2500 * time.Millisecond)
				for size, spec := range map[string]any{
					"small": "x", "40 KB": strings.Repeat("x", 40_000), "80 KB of YAML": strings.Repeat("- {name: a, port: 80}\n", 4_000),
					"40 KB of values": values(40_000), "70 KB of values": values(70_000),
				} {
					if code, took := c.send(t.Context(), "10.0.0.1", c.review("victim", "x", spec)); code != http.StatusOK || took > 0 {
						t.Errorf("a review of another tenant, %s, got %d after %v", size, code, took)
					}
				}
				stop()
			})
		})
	}
}

// Slow reviews of several tenants have all that one client can have. A tenant that has nothing must
// not wait for their ends.
func TestSlowReviewsOfSeveralTenantsDoNotDelayThoseOfOthers(t *testing.T) {
	for name, spec := range map[string]any{"small": "x", "small bodies": strings.Repeat("x", 60_000), "large bodies": strings.Repeat("x", 500_000)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t)
				for n := range 3 {
					stop := c.flood(100, "10.0.0.1", c.review(fmt.Sprint("attacker-", n), "slow", spec))
					defer stop()
				}
				time.Sleep(2500 * time.Millisecond)
				for size, spec := range map[string]any{"small": "x", "40 KB": strings.Repeat("x", 40_000), "300 KB": strings.Repeat("x", 300_000)} {
					for n := range 5 {
						if code, took := c.send(t.Context(), "10.0.0.1", c.review(fmt.Sprint("victim-", n), "x", spec)); code != http.StatusOK || took > 0 {
							t.Errorf("a review of another tenant, %s, got %d after %v", size, code, took)
						}
					}
				}
				if n := c.v.Load().InFlight; n > 2*64 {
					t.Errorf("%d reviews of one client are handled", n)
				}
			})
		})
	}
}

// A network peer can invent namespaces. It cannot have the places of other clients with them.
func TestInventedNamespacesLeavePlacesForOtherClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		for n := range 200 {
			stop := c.flood(1, "10.0.0.6", c.review(fmt.Sprint("invented-", n), "slow", "x"))
			defer stop()
		}
		time.Sleep(1500 * time.Millisecond)
		for n := range 3 {
			if code, took := c.send(t.Context(), "10.0.0.1", c.review(fmt.Sprint("victim-", n), "x", "x")); code != http.StatusOK || took > 0 {
				t.Errorf("a review of the API server got %d after %v", code, took)
			}
		}
	})
}

// withLongName returns a review of an object with such a long name that its beginning has no
// namespace.
func (c *crowd) withLongName(review []byte) []byte {
	var long map[string]any
	if err := json.Unmarshal(review, &long); err != nil {
		c.t.Fatal(err)
	}
	long["request"].(map[string]any)["name"] = strings.Repeat("n", 3000)
	raw, err := json.Marshal(long)
	if err != nil {
		c.t.Fatal(err)
	}
	if got := namespaceOf(raw[:beginningSize]); got != unknownNamespace {
		c.t.Fatalf("the beginning has the namespace %q", got)
	}
	return raw
}

// Bodies with long names wait for the part of the unknown namespace. When they have arrived, they
// must not exceed the part of their own.
func TestReviewsWithLongNamesStayInThePartOfTheirNamespace(t *testing.T) {
	for name, size := range map[string]int{"small": 50_000, "large": 1_500_000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t)
				ctx, cancel := context.WithCancel(t.Context())
				raw := c.withLongName(c.review("attacker", "slow", strings.Repeat("x", size)))
				var all sync.WaitGroup
				for range 600 {
					all.Go(func() { c.send(ctx, "10.0.0.1", raw) })
					time.Sleep(time.Millisecond)
				}
				for _, b := range []*budget{&c.v.inbox.small, &c.v.inbox.large} {
					b.mu.Lock()
					_, l := b.of(sender{"10.0.0.1", "attacker"})
					if l.used > b.each {
						t.Errorf("the namespace has %d bytes of at most %d", l.used, b.each)
					}
					b.mu.Unlock()
				}
				cancel()
				all.Wait()
				c.v.Wait(context.Background())
			})
		})
	}
}

// API servers send the name of an object before its namespace, and call mutating webhooks before
// they refuse long names. So the beginning of such a review has no namespace.
func TestLongNamesGiveATenantNoSecondShare(t *testing.T) {
	for name, spec := range map[string]any{"small": "x", "large": strings.Repeat("x", 100_000), "costly": values(200_000)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t)
				raw := c.withLongName(c.review("attacker", "slow", spec))
				stop := c.flood(80, "10.0.0.1", c.review("attacker", "slow", spec))
				stopLong := c.flood(80, "10.0.0.1", raw)
				time.Sleep(2500 * time.Millisecond)
				for size, spec := range map[string]any{"small": "x", "80 KB": strings.Repeat("x", 80_000), "70 KB of values": values(70_000)} {
					if code, took := c.send(t.Context(), "10.0.0.1", c.review("victim", "x", spec)); code != http.StatusOK || took > 0 {
						t.Errorf("a review of another tenant, %s, got %d after %v", size, code, took)
					}
				}
				stop()
				stopLong()
			})
		})
	}
}

// A network peer keeps some reviews open that count as more than the memory of all costly ones.
func TestGiantReviewsOfOnePeerDoNotDelayThoseOfTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		object := map[string]any{"metadata": map[string]any{"name": "slow"}, "spec": values(250_000)}
		giant, err := json.Marshal(reviewOf("UPDATE", map[string]any{"object": object, "oldObject": object}))
		if err != nil {
			t.Fatal(err)
		}
		if got := cost(giant); got < c.v.lanes.costly.size {
			t.Fatalf("the review counts as %d only", got)
		}
		stop := c.flood(4, "10.0.0.66", giant)
		time.Sleep(1500 * time.Millisecond)
		for range 10 {
			code, took := c.send(t.Context(), "10.0.0.1", c.review("default", "x", values(70_000)))
			if code != http.StatusOK || took > 0 {
				t.Errorf("a review of the API server got %d after %v", code, took)
			}
		}
		if blocked := c.v.Load().Blocked; !blocked.IsZero() {
			t.Errorf("the reviewer is blocked since %v, so the operator would not be ready", time.Since(blocked))
		}
		stop()
	})
}

// A peer cannot take more than the share of a client by names that it invents.
func TestInventedNamespacesDoNotDelayOtherClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		var stops []func()
		for i := range 60 {
			stops = append(stops, c.flood(2, "10.0.0.66", c.review(strings.Repeat("n", i+1), "slow", values(30_000))))
		}
		time.Sleep(1500 * time.Millisecond)
		for range 10 {
			code, took := c.send(t.Context(), "10.0.0.1", c.review("default", "x", values(70_000)))
			if code != http.StatusOK || took > 0 {
				t.Errorf("a review of the API server got %d after %v", code, took)
			}
		}
		for _, stop := range stops {
			stop()
		}
	})
}
