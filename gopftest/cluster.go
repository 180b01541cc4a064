package gopftest

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// Cluster is an in-memory Kubernetes API, or a real one; see [RealCluster].
//
// An in-memory cluster uses no sockets, so it works inside and outside of a
// testing/synctest bubble. It is safe for concurrent use. When its test ends, it closes
// all watches, and later requests fail.
type Cluster struct {
	hand     hand
	config   *rest.Config // of a real cluster; nil means in memory. The fields below are for in-memory clusters.
	kinds    *servedKinds
	store    *store
	requests *requestLog
	faults   *faults
	access   *access
	assumed  atomic.Pointer[assumed] // nil means that no account is assumed

	reactions *reactions
	alone     bool         // it belongs to no test; see NewStandalone
	minor     atomic.Int32 // minor version of Kubernetes to imitate; 0: the latest
	missing   sync.Map     // features of the API that are switched off

	learning sync.Mutex
	declared map[reflect.Type]string // the resources of Go types; see learn

	memos    sync.Map // memos of objects, by UID
	webhooks sync.Map // handlers by host
	matchers matchers // of webhooks

	mu      sync.Mutex
	closing bool
	closed  chan struct{}
	serving sync.WaitGroup
	streams map[*stream]context.CancelCauseFunc
}

// NewCluster returns an in-memory cluster that serves the given resources. A resource
// is named "group/version/plural", or "version/plural" in the core group, or by the
// bare plural if it is a well-known kind such as "pods".
//
// Custom resources named this way are namespaced, have a status subresource, and accept
// all fields. For anything else, use [Cluster.Define], load the custom resource
// definition by [Cluster.Load], or create it through the API.
//
// Every cluster serves namespaces, events, leases, custom resource definitions and
// webhook configurations. The namespaces default, kube-system, kube-public and
// kube-node-lease exist.
func NewCluster(t testing.TB, resources ...string) *Cluster {
	t.Helper()
	c := newMemory(func(b *builtin) bool { return b.always })
	for _, name := range resources {
		k, err := parseKind(name)
		if err == nil {
			err = c.define(k)
		}
		if err != nil {
			t.Fatalf("NewCluster: %v", err)
		}
	}
	t.Cleanup(c.close)
	return c
}

// newMemory returns an in-memory cluster that serves the selected well-known kinds.
func newMemory(serves func(*builtin) bool) *Cluster {
	c := &Cluster{
		kinds:    &servedKinds{},
		store:    newStore(),
		requests: &requestLog{},
		faults:   &faults{},
		access:   &access{},
		closed:   make(chan struct{}),
		streams:  map[*stream]context.CancelCauseFunc{},
	}
	c.hand = inMemory{c}
	c.reactions = &reactions{cluster: c, owners: newOwnership()}
	c.store.committed = c.reactions.add
	for _, b := range builtins() {
		if serves(&b) {
			c.serveBuiltin(&b)
		}
	}
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		namespace := &unstructured.Unstructured{Object: map[string]any{}}
		namespace.SetAPIVersion("v1")
		namespace.SetKind("Namespace")
		namespace.SetName(name)
		if _, err := c.hand.create(namespace); err != nil {
			panic("gopftest: create a namespace in a new cluster: " + err.Error())
		}
	}
	return c
}

// RESTConfig returns the client configuration of the cluster, without a client-side
// rate limit. Every call returns a new copy, which the caller may change.
func (c *Cluster) RESTConfig() *rest.Config {
	if c.Real() {
		return rest.CopyConfig(c.config)
	}
	return &rest.Config{Host: "https://cluster.test", Transport: c.Transport(), QPS: -1}
}

// Real reports whether the cluster is a real one.
func (c *Cluster) Real() bool { return c.config != nil }

// memoryOnly panics on a real cluster. Otherwise a test could rely on an effect that
// does not happen there.
func (c *Cluster) memoryOnly(what string) {
	if c.Real() {
		panic("gopftest: " + what + " works only on in-memory clusters: use NewCluster, or check Cluster.Real")
	}
}

// As returns [Cluster.RESTConfig] with impersonation of a user, such as
// "system:serviceaccount:NAMESPACE:NAME". The roles and bindings in the cluster decide
// what this user may do, so a test can check the RBAC manifests of an operator.
func (c *Cluster) As(user string) *rest.Config {
	cfg := c.RESTConfig()
	cfg.Impersonate.UserName = user
	return cfg
}

// Transport returns a RoundTripper that sends all requests to the cluster, whatever
// their host.
func (c *Cluster) Transport() http.RoundTripper {
	c.memoryOnly("Transport")
	return transport{c, c.handle}
}

// Handler returns the cluster's API as an HTTP handler, for servers such as those of
// net/http/httptest.
func (c *Cluster) Handler() http.Handler {
	c.memoryOnly("Handler")
	return http.HandlerFunc(c.handle)
}

// begin registers a request. It returns false after the end of the test.
func (c *Cluster) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.serving.Add(1)
	return true
}

func (c *Cluster) end() { c.serving.Done() }

// close ends all requests and waits for them.
func (c *Cluster) close() {
	c.mu.Lock()
	c.closing = true
	close(c.closed)
	for _, end := range c.streams {
		end(errStreamEnds)
	}
	c.mu.Unlock()
	c.serving.Wait()
}

// open returns the context of a new stream, and a function to call when the stream
// ends. The request, [Cluster.CutStreams] or the end of the cluster cancel the context.
func (c *Cluster) open(ctx context.Context, st *stream) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		end(errStreamEnds)
	}
	c.streams[st] = end
	return ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.streams, st)
		end(nil)
	}
}

// CutStreams breaks the connections of all watches. Clients can reconnect immediately.
func (c *Cluster) CutStreams() {
	c.memoryOnly("CutStreams")
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range c.streams {
		end(errCut)
	}
}

// Expire discards the watch history, as the real API server does every few minutes.
// A watch or a list page that continues from an older version fails with 410 Expired.
// Open watches are not affected.
func (c *Cluster) Expire() {
	c.memoryOnly("Expire")
	c.store.compact()
}
