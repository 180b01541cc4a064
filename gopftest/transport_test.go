package gopftest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const listURL = "https://cluster.test/apis/kopf.dev/v1/kopfexamples"

func request(ctx context.Context, t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestWatchHeadersArriveImmediately(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		start := time.Now()
		resp, err := c.Transport().RoundTrip(request(t.Context(), t, "GET", listURL+"?watch=true&"+now(c), ""))
		if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" || time.Since(start) != 0 {
			t.Fatal(resp, err, time.Since(start))
		}
		resp.Body.Close()
	})
}

// When the client has the headers, the watch is active: it receives all later changes.
func TestAnOpenWatchMissesNothing(t *testing.T) {
	c := NewCluster(t, examples)
	for i := range 100 {
		resp, err := c.Transport().RoundTrip(request(t.Context(), t, "GET",
			listURL+"?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=10", ""))
		if err != nil {
			t.Fatal(err)
		}
		name := "x" + itoa(int64(i))
		c.Create(t, example(name))
		line, err := bufio.NewReader(resp.Body).ReadString('\n')
		if got := summary(line); err != nil || got != "ADDED "+name+" value" {
			t.Fatalf("got %s, %v", got, err)
		}
		resp.Body.Close()
	}
}

func TestWatchesEndWithTheirDefinition(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		c.Create(t, example("a"))
		lines := follow(t, c, now(c))
		c.Delete(t, "crds", "", "kopfexamples.kopf.dev")
		if got := drain(lines); !slices.Equal(got, []string{"DELETED a value", "end"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestACompleteResponseNeedsNoReader(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		resp, err := c.Transport().RoundTrip(request(t.Context(), t, "GET", listURL, ""))
		if err != nil || resp.ContentLength <= 0 {
			t.Fatal(resp, err)
		}
		// It is never read or closed, and still the bubble ends.
	})
}

func TestReadersGetTheReasonOfTheEnd(t *testing.T) {
	tests := map[string]struct {
		end  func(c *Cluster, body io.Closer, cancel context.CancelFunc)
		want error
	}{
		"the client's context": {func(_ *Cluster, _ io.Closer, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"the client closes":    {func(_ *Cluster, body io.Closer, _ context.CancelFunc) { body.Close() }, http.ErrBodyReadAfterClose},
		"the streams are cut":  {func(c *Cluster, _ io.Closer, _ context.CancelFunc) { c.CutStreams() }, io.ErrUnexpectedEOF},
		"the time is over":     {func(*Cluster, io.Closer, context.CancelFunc) { time.Sleep(2 * time.Hour) }, io.EOF},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *Cluster) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				resp, err := c.Transport().RoundTrip(request(ctx, t, "GET", listURL+"?watch=true&"+now(c), ""))
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan error)
				go func() {
					_, err := resp.Body.Read(make([]byte, 1))
					done <- err
				}()
				synctest.Wait()
				tt.end(c, resp.Body, cancel)
				if err := <-done; !errors.Is(err, tt.want) {
					t.Errorf("got %v, want %v", err, tt.want)
				}
			})
		})
	}
}

func TestTheClusterClosesDespiteStalledReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, examples)
		c.Create(t, example("a"))
		for range 3 {
			if _, err := c.Transport().RoundTrip(request(context.Background(), t, "GET", listURL+"?watch=true", "")); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // all block in writing the first event
	})
}

func TestRequestsFailAfterTheEndOfTheTest(t *testing.T) {
	var c *Cluster
	t.Run("a test", func(t *testing.T) { c = NewCluster(t, examples) })
	if _, err := c.Transport().RoundTrip(request(t.Context(), t, "GET", listURL, "")); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
}

func TestACanceledRequestIsNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Transport().RoundTrip(request(ctx, t, "GET", listURL, "")); !errors.Is(err, context.Canceled) || len(c.Requests()) != 0 {
			t.Errorf("got %v, %d requests", err, len(c.Requests()))
		}
	})
}

func TestTheHandlerWorksOverARealListener(t *testing.T) {
	c := NewCluster(t, examples)
	server := httptest.NewServer(c.Handler())
	t.Cleanup(server.Close)
	d, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	kex := d.Resource(schema.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: "kopfexamples"}).Namespace("default")
	w, err := kex.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kex.Create(t.Context(), example("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if ev := <-w.ResultChan(); ev.Type != "ADDED" {
		t.Errorf("got %v", ev)
	}
	c.Fault(Requests("get", "kopfexamples").First(1), Drop())
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request(t.Context(), t, "GET", server.URL+"/apis/kopf.dev/v1/namespaces/default/kopfexamples/a", ""))
	if err == nil {
		resp.Body.Close()
		t.Error("the connection was not broken")
	}
	c.CutStreams()
	for range w.ResultChan() {
	}
}
