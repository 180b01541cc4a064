package faults_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// proxy stands between an operator and the API server. It speaks TLS, HTTP/2 and
// HTTP/1.1 as the server does, and passes everything on, streams as they come,
// except for what its rules strike.
type proxy struct {
	lines  *lines // the connections below
	ledger ledger

	server *httptest.Server
	to     *url.URL
	admin  http.RoundTripper // with the administrator's credentials
	plain  http.RoundTripper // for requests that bring their own

	mu      sync.Mutex
	rules   []*rule
	streams map[*exchange]bool
	opened  map[string]int // watches that have begun, by resource
	closing chan struct{}
}

// exchange is one request and what becomes of it.
type exchange struct {
	proxy *proxy
	w     http.ResponseWriter
	r     *http.Request
	body  []byte

	kind                        string // watch, list, get, write, other
	resource, name, subresource string // if it is about objects

	// Of watches only.
	filter filter        // what becomes of events; nil for nothing
	cut    chan struct{} // closed to end it without a word
	frozen chan struct{} // closed to make it silent
}

func newProxy(t *testing.T, cluster *rest.Config) *proxy {
	t.Helper()
	anonymous := rest.AnonymousClientConfig(cluster)
	p := &proxy{
		admin: transport(t, cluster), plain: transport(t, anonymous),
		streams: map[*exchange]bool{}, opened: map[string]int{}, closing: make(chan struct{}),
	}
	var err error
	if p.to, err = url.Parse(cluster.Host); err != nil {
		t.Fatal(err)
	}
	p.server = httptest.NewUnstartedServer(p)
	p.lines = &lines{Listener: p.server.Listener, open: map[*line]bool{}}
	p.server.Listener = p.lines
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0) // faults are what it is for
	p.server.StartTLS()
	t.Cleanup(func() {
		close(p.closing)
		p.lines.cutAll()
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// transport does not touch what it transports. All requests have connections of
// their own, so that they have nothing to do with each other.
func transport(t *testing.T, config *rest.Config) http.RoundTripper {
	t.Helper()
	config = rest.CopyConfig(config)
	config.DisableCompression = true
	config.NextProtos = []string{"http/1.1"}
	rt, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// config is for an operator that goes through the proxy.
func (p *proxy) config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return &rest.Config{Host: p.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was cut before it was whole
	}
	x := &exchange{proxy: p, w: w, r: r, body: body, cut: make(chan struct{}), frozen: make(chan struct{})}
	x.classify()
	p.effectOn(x)(x)
}

// classify finds out what the request is about.
func (x *exchange) classify() {
	parts := strings.Split(strings.Trim(x.r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		x.kind = "other"
		return
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	parts = append(parts, "", "")
	x.resource, x.name, x.subresource = parts[0], parts[1], parts[2]
	switch {
	case x.r.Method != http.MethodGet:
		x.kind = "write"
	case x.r.URL.Query().Get("watch") == "true":
		x.kind = "watch"
	case x.name == "":
		x.kind = "list"
	default:
		x.kind = "get"
	}
}

// forward has the server answer. Writes reach it even if nobody waits for the
// answer, and are entered into the ledger.
func (x *exchange) forward() (*http.Response, error) {
	ctx := x.r.Context()
	if x.kind == "write" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), kit.Patience)
		defer cancel()
	}
	req := x.r.Clone(ctx)
	req.RequestURI, req.Host = "", x.proxy.to.Host
	req.URL.Scheme, req.URL.Host = x.proxy.to.Scheme, x.proxy.to.Host
	req.Header.Del("Accept-Encoding")
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(x.body)), int64(len(x.body))
	via := x.proxy.admin
	if req.Header.Get("Authorization") != "" {
		via = x.proxy.plain
	}
	resp, err := via.RoundTrip(req)
	if err != nil || x.kind == "watch" {
		return resp, err
	}
	whole, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(whole))
	if x.kind == "write" {
		x.proxy.ledger.enter(x, resp.StatusCode, whole)
	}
	return resp, nil
}

// pass hands on the request, and the answer as it comes.
func (x *exchange) pass() {
	resp, err := x.forward()
	if err != nil {
		x.abort()
	}
	defer resp.Body.Close()
	x.head(resp)
	if x.kind == "watch" && resp.StatusCode == http.StatusOK {
		x.stream(resp.Body)
		return
	}
	_, _ = io.Copy(x.w, resp.Body) // the client may be gone
}

// head hands on the head of an answer.
func (x *exchange) head(resp *http.Response) {
	maps.Copy(x.w.Header(), resp.Header)
	x.w.WriteHeader(resp.StatusCode)
	x.flush()
}

func (x *exchange) flush() { _ = http.NewResponseController(x.w).Flush() }

// abort breaks off: an HTTP/1.1 connection is closed, of HTTP/2 only the stream.
func (x *exchange) abort() { panic(http.ErrAbortHandler) }

// hang lets the client wait until it gives up.
func (x *exchange) hang() {
	select {
	case <-x.r.Context().Done():
	case <-x.proxy.closing:
	}
	x.abort()
}

// wait lets time pass, unless the client gives up.
func (x *exchange) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-x.cut:
		x.abort()
	case <-x.r.Context().Done():
		x.abort()
	case <-x.proxy.closing:
		x.abort()
	}
}

// watches tells how many watches of the resource have begun.
func (p *proxy) watches(resource string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened[resource]
}

// streamsOf are the open watches of the resource; of all for "".
func (p *proxy) streamsOf(resource string) []*exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := slices.Collect(maps.Keys(p.streams))
	return slices.DeleteFunc(open, func(x *exchange) bool { return resource != "" && x.resource != resource })
}

// cutStreams ends the watches of a resource in the middle of nowhere.
func (p *proxy) cutStreams(resource string) {
	for _, x := range p.streamsOf(resource) {
		close(x.cut)
		p.mu.Lock()
		delete(p.streams, x)
		p.mu.Unlock()
	}
}

// freezeStreams makes the open watches of a resource silent for ever.
func (p *proxy) freezeStreams(resource string) {
	for _, x := range p.streamsOf(resource) {
		close(x.frozen)
		p.mu.Lock()
		delete(p.streams, x)
		p.mu.Unlock()
	}
}
