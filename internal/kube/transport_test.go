package kube

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// serve starts a real server for HTTP/2 and HTTP/1.1.
func serve(t *testing.T, handler http.HandlerFunc) *rest.Config {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &rest.Config{Host: s.URL, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

func TestWatchesAndRequestsUseSeparateConnections(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]string{} // what → protocol and address
	cfg := serve(t, func(w http.ResponseWriter, r *http.Request) {
		what := "request"
		switch {
		case r.URL.Query().Get("timeoutSeconds") == "1":
			what = "probe"
		case r.URL.Query().Get("watch") != "":
			what = "watch"
		}
		mu.Lock()
		seen[what] = r.Proto + " " + r.RemoteAddr
		mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("User-Agent") != "me/1" {
			t.Errorf("headers: got %v", r.Header)
		}
		if what == "request" {
			io.WriteString(w, onePod)
			return
		}
		fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", onePod)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	o := DefaultOptions()
	o.UserAgent = "me/1"
	client, err := NewClient(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var watches []*Watch
	for _, o := range []WatchOptions{{}, {ServerTimeout: 1e9, Probe: true}} {
		w, err := client.Watch(t.Context(), pods, "", o)
		if err != nil {
			t.Fatal(err)
		}
		watches = append(watches, w)
		if e, err := w.Next(); err != nil || e.Body.Name != "a" {
			t.Errorf("got %v, %v", e, err)
		}
	}
	if err := get(t.Context(), client); err != nil {
		t.Error(err)
	}
	for _, w := range watches {
		closed := make(chan struct{})
		go func() { // while Next waits
			defer close(closed)
			w.Close()
		}()
		if _, err := w.Next(); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: got %v", err)
		}
		<-closed
	}
	mu.Lock()
	defer mu.Unlock()
	if seen["watch"][:8] != "HTTP/1.1" || seen["request"][:8] != "HTTP/1.1" || seen["probe"][:8] != "HTTP/2.0" || seen["watch"] == seen["request"] {
		t.Errorf("connections: got %v", seen)
	}
}

func TestAWriteWhoseConnectionBreaksHasAnUnknownOutcome(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2"} {
		t.Run(proto, func(t *testing.T) {
			calls := 0
			cfg := serve(t, func(http.ResponseWriter, *http.Request) {
				calls++
				panic(http.ErrAbortHandler)
			})
			if proto == "HTTP/1.1" {
				cfg.NextProtos = []string{"http/1.1"}
			}
			client, err := NewClient(cfg, DefaultOptions())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			err = patchIt(t.Context(), client)
			var unknown *UnknownOutcomeError
			if !errors.As(err, &unknown) || calls != 1 {
				t.Errorf("got %v after %d calls", err, calls)
			}
		})
	}
}

func TestAConnectionWithoutAResponseIsNotReused(t *testing.T) {
	var mu sync.Mutex
	var dead string // the first connection
	cfg := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if dead == "" {
			dead = r.RemoteAddr
		}
		silent := dead == r.RemoteAddr
		mu.Unlock()
		if silent {
			<-r.Context().Done()
			return
		}
		io.WriteString(w, onePod)
	})
	o := DefaultOptions()
	o.RequestTimeout = time.Second
	o.Backoffs = slices.Values([]time.Duration{0, 0, 0, 0, 0})
	attempts := 0
	o.Observe = func(Observation) { attempts++ }
	client, err := NewClient(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	before := client.shared.conns.Load()
	if err := get(t.Context(), client); err != nil || attempts != 2 {
		t.Errorf("got %v after %d attempts", err, attempts)
	}
	if !before.isReplaced() {
		t.Error("the old connections were not replaced")
	}
}

func TestAWriteThatWasNeverSentIsRetried(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nothing listens there now
	o := DefaultOptions()
	o.Backoffs = slices.Values([]time.Duration{0, 0})
	attempts := 0
	o.Observe = func(Observation) { attempts++ }
	client, err := NewClient(&rest.Config{Host: "https://" + l.Addr().String()}, o)
	if err != nil {
		t.Fatal(err)
	}
	err = patchIt(t.Context(), client)
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || attempts != 3 {
		t.Errorf("got %v after %d attempts", err, attempts)
	}
}

func TestProxiesAreUsed(t *testing.T) {
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.Host
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer proxy.Close()
	address, _ := url.Parse(proxy.URL)
	o := DefaultOptions()
	o.Backoffs = nil
	client, err := NewClient(&rest.Config{Host: "https://far.away:6443", Proxy: http.ProxyURL(address)}, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := get(t.Context(), client); err == nil {
		t.Error("got no error")
	}
	if got := <-asked; got != "CONNECT far.away:6443" {
		t.Errorf("got %q", got)
	}
}

func TestBadConfigurations(t *testing.T) {
	for name, cfg := range map[string]*rest.Config{
		"a bad URL":         {Host: "https://a b"},
		"a bad certificate": {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("nonsense")}},
		"a missing file":    {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewClient(cfg, DefaultOptions()); err == nil {
				t.Error("got no error")
			}
		})
	}
}

func TestProxyVariablesAreUsedUnlessIgnored(t *testing.T) {
	for _, ignored := range []bool{false, true} {
		o := DefaultOptions()
		o.IgnoreProxyVariables = ignored
		transport, _, err := newTransport(&rest.Config{Host: "https://server"}, o, nil, responsePace())
		if err != nil {
			t.Fatal(err)
		}
		if (transport.Proxy == nil) != ignored {
			t.Errorf("ignored %v: the transport has a proxy function: %v", ignored, transport.Proxy != nil)
		}
	}
}
