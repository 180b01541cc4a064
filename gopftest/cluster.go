package gopftest

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// Cluster is an in-memory Kubernetes API, or a real one; see [RealCluster]. One in
// memory uses no sockets, so that it works inside a testing/synctest bubble; it
// works outside of one, too. It ends with the test that made it: streams are closed
// then, and later requests fail.
type Cluster struct {
	hand     hand
	config   *rest.Config // of a real cluster; nil for one in memory, to which all else belongs
	kinds    *servedKinds
	store    *store
	requests *requestLog
	faults   *faults
	access   *access

	reactions *reactions
	minor     atomic.Int32 // of the version that it plays; 0: the latest
	missing   sync.Map     // features that it does without

	memos    sync.Map // of objects that handlers are called for, by uid
	webhooks sync.Map // handlers by host
	matchers matchers // of webhooks

	mu      sync.Mutex
	closing bool
	closed  chan struct{}
	serving sync.WaitGroup
	streams map[*stream]context.CancelCauseFunc
}

// NewCluster makes a cluster that serves the given resources, named as
// "group/version/plural" or, in the core group, "version/plural". Kinds that the
// name does not tell enough of can be given by [Cluster.Define], or created as a
// definition of a custom resource through the API.
//
// Namespaces, events, leases, definitions of custom resources and webhook
// configurations are always served, and the namespaces default, kube-system,
// kube-public and kube-node-lease exist.
func NewCluster(t testing.TB, resources ...string) *Cluster {
	t.Helper()
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
		if b.always {
			c.serveBuiltin(&b)
		}
	}
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		c.CreateNamespace(t, name)
	}
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

// RESTConfig is how clients reach the cluster. There is no client-side rate limit.
// Every call returns a new one, to be changed freely.
func (c *Cluster) RESTConfig() *rest.Config {
	if c.Real() {
		return rest.CopyConfig(c.config)
	}
	return &rest.Config{Host: "https://cluster.test", Transport: c.Transport(), QPS: -1}
}

// As is [Cluster.RESTConfig] in the name of a user, such as
// "system:serviceaccount:NAMESPACE:NAME": what that one may do is judged by the
// roles and bindings in the cluster. So manifests with permissions can be tested.
func (c *Cluster) As(user string) *rest.Config {
	cfg := c.RESTConfig()
	cfg.Impersonate.UserName = user
	return cfg
}

// Transport passes requests to the cluster, whatever host they are for.
func (c *Cluster) Transport() http.RoundTripper {
	c.memoryOnly("Transport")
	return transport{c, c.handle}
}

// Handler is the cluster's API for a server of the test's own, such as those of
// net/http/httptest.
func (c *Cluster) Handler() http.Handler {
	c.memoryOnly("Handler")
	return http.HandlerFunc(c.handle)
}

// begin counts a request in; false after the end of the test.
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

// close ends everything that is being served, and waits for it.
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

// open returns the context of a new stream, which ends with the request, by
// [Cluster.CutStreams], or with the cluster; and what to call at its end.
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

// CutStreams breaks the connections of all watches that are being served. New ones
// can be opened at once.
func (c *Cluster) CutStreams() {
	c.memoryOnly("CutStreams")
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range c.streams {
		end(errCut)
	}
}

// Expire forgets the history, as the real server does every few minutes: watches
// and pages that want to go on from an older version are told that it is expired.
// Streams that are being served are not affected.
func (c *Cluster) Expire() {
	c.memoryOnly("Expire")
	c.store.compact()
}
