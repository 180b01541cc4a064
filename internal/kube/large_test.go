package kube

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// slowBody is the body of a large response of a slow connection. It counts the bodies that are
// read beyond the size that needs no place.
type slowBody struct {
	io.Reader
	reading *atomic.Int32
	most    *atomic.Int32
	read    int
	large   bool
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.read >= largeResponse && !b.large {
		b.large = true
		if now := b.reading.Add(1); now > b.most.Load() {
			b.most.Store(now)
		}
		time.Sleep(time.Second)
	}
	n, err := b.Reader.Read(p)
	b.read += n
	if err == io.EOF && b.large {
		b.reading.Add(-1)
	}
	return n, err
}

func (b *slowBody) Close() error { return nil }

// One large object may be read by many handlers at the same time.
func TestLargeResponsesWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := NewClient(&rest.Config{Host: "http://localhost"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var reading, most atomic.Int32
		began := time.Now()
		read := func(namespace string, size int) {
			request, err := http.NewRequestWithContext(For(t.Context(), namespace), http.MethodGet, "http://localhost", nil)
			if err != nil {
				t.Error(err)
				return
			}
			body := &slowBody{Reader: strings.NewReader(strings.Repeat("x", size)), reading: &reading, most: &most}
			got := 0
			err = c.slurp(&response{Response: &http.Response{Body: body, Request: request, ContentLength: int64(size)}}, func(raw []byte) error {
				got = len(raw)
				return nil
			})
			if err != nil || got != size {
				t.Errorf("%d of %d bytes: %v", got, size, err)
			}
		}
		var running sync.WaitGroup
		for range 100 {
			running.Go(func() { read("attacker", largeResponse+1) })
		}
		synctest.Wait()
		read("small", largeResponse-1)
		if waited := time.Since(began); waited > 2*time.Second {
			t.Errorf("responses of the usual size took %v", waited)
		}
		read("other", 4*largeResponse)
		if waited := time.Since(began); waited > 4*time.Second {
			t.Errorf("the large response of another namespace took %v", waited)
		}
		running.Wait()
		if got := most.Load(); got > maxLarge || got < 2 {
			t.Errorf("%d large responses were read concurrently, want at most %d", got, maxLarge)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost", nil)
		for i := range maxLarge {
			place, _ := c.shared.large.acquire(t.Context(), strconv.Itoa(i))
			defer c.shared.large.release(place, nothing)
		}
		body := &slowBody{Reader: strings.NewReader(strings.Repeat("x", 2*largeResponse)), reading: &reading, most: &most}
		if err := c.slurp(&response{Response: &http.Response{Body: body, Request: request}}, nil); err == nil {
			t.Error("a response whose request ended waits for its place")
		}
	})
}
