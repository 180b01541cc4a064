package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// silence is a server that gives no response on connections that are marked as dead.
type silence struct {
	mu   sync.Mutex
	seen []string // connections, in the order of their first request
	dead map[string]bool
}

func (s *silence) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if !slices.Contains(s.seen, r.RemoteAddr) {
		s.seen = append(s.seen, r.RemoteAddr)
	}
	dead := s.dead[r.RemoteAddr]
	s.mu.Unlock()
	if dead {
		<-r.Context().Done()
		return
	}
	time.Sleep(50 * time.Millisecond) // for others to need a connection
	io.WriteString(w, onePod)
}

// kill marks the connections so far as dead, and returns their number.
func (s *silence) kill() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = map[string]bool{}
	for _, address := range s.seen {
		s.dead[address] = true
	}
	return len(s.seen)
}

// The connections of an earlier burst are dead. One request without a response is enough:
// the next one does not try the others.
func TestAfterASilentRequestIdleConnectionsAreNotReused(t *testing.T) {
	t.Parallel() // takes 2 s of real time
	server := &silence{}
	client, err := NewClient(serve(t, server.ServeHTTP), DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	burst(t, client, 8)
	if n := server.kill(); n < 2 {
		t.Fatalf("the burst used %d connections", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), suspectAfter+100*time.Millisecond)
	defer cancel()
	if err := get(ctx, client); err == nil {
		t.Fatal("a dead connection has responded")
	}
	ctx, cancel = context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if err := get(ctx, client); err != nil {
		t.Errorf("the next request: %v", err)
	}
}

func TestCloseIdle(t *testing.T) {
	server := &silence{}
	client, err := NewClient(serve(t, server.ServeHTTP), DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	burst(t, client, 4)
	server.kill()
	client.CloseIdle()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if err := get(ctx, client); err != nil {
		t.Error(err)
	}
}

// burst makes n requests at the same time, on as many connections.
func burst(t *testing.T, client *Client, n int) {
	t.Helper()
	var all sync.WaitGroup
	errs := make(chan error, n)
	for range n {
		all.Go(func() { errs <- get(t.Context(), client) })
	}
	all.Wait()
	for range n {
		if err := <-errs; err != nil {
			t.Fatal(fmt.Errorf("a request of a burst: %w", err))
		}
	}
}
