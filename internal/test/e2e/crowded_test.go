package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// observer counts the requests and connections of an operator.
type observer struct {
	mu      sync.Mutex
	follows []string // the scopes of lists and watches that begin with all objects: "" for the cluster
	open    int      // connections that were opened and not closed
}

// config returns a configuration of the shared cluster whose use is counted.
func (o *observer) config() *rest.Config {
	cfg := rest.CopyConfig(cluster)
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		o.count(1)
		return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { o.count(-1) })}, nil
	}
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return observed{rt, o} })
	return cfg
}

func (o *observer) count(connections int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open += connections
}

func (o *observer) seen() (follows []string, open int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(slices.Values(o.follows)), o.open
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

type observed struct {
	http.RoundTripper
	by *observer
}

func (o observed) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	if strings.HasSuffix(r.URL.Path, "/kopfexamples") && (q.Has("sendInitialEvents") || q.Get("limit") == "500") {
		_, after, _ := strings.Cut(r.URL.Path, "/namespaces/")
		namespace, _, _ := strings.Cut(after, "/")
		o.by.mu.Lock()
		o.by.follows = append(o.by.follows, namespace)
		o.by.mu.Unlock()
	}
	return o.RoundTripper.RoundTrip(r)
}

// crowd creates namespaces. Every tenth has an object.
func crowd(t *testing.T, prefix string, n int) (all []string, busy []objects) {
	for i := range n {
		all = append(all, namespaceNamed(t, fmt.Sprintf("%s-%03d", prefix, i)))
		if i%10 == 0 {
			busy = append(busy, examples(t, all[i]))
			busy[len(busy)-1].create("example", nil)
		}
	}
	return all, busy
}

func TestOneWatchServesManyNamespaces(t *testing.T) {
	t.Parallel()
	unique := namespace(t)
	_, busy := crowd(t, unique, 200)
	called, requests := &calls{}, &observer{}
	operator := run(t, greeter(called), gopf.Cluster(requests.config()), gopf.Namespaces(unique+"-*"))
	for _, objects := range busy {
		objects.awaitHandled("example")
	}
	late := examples(t, namespaceNamed(t, unique+"-late"))
	late.create("example", nil)
	late.awaitHandled("example")
	other := examples(t, namespace(t))
	other.create("example", nil)
	quiet := examples(t, unique+"-123")
	quiet.create("example", nil)
	quiet.awaitHandled("example")
	operator.Stop()
	if other.handled("example") {
		t.Error("an object elsewhere was handled")
	}
	if got := called.all(); len(got) != len(busy)+2 {
		t.Errorf("%d calls for %d objects: %q", len(got), len(busy)+2, got)
	}
	follows, _ := requests.seen()
	// A server that is not ready makes the operator repeat a list.
	if diff := cmp.Diff([]string{"", unique + "-late"}, slices.Compact(follows)); diff != "" {
		t.Errorf("lists: -want +got\n%s", diff)
	}
}

func TestManyNamespacesWithoutPermissionForTheClusterShareConnections(t *testing.T) {
	t.Parallel()
	unique := namespace(t)
	all, busy := crowd(t, unique, 100)
	rbac := func(namespace, kind, plural string) objects {
		return objects{t, namespace, kind, schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: plural}}
	}
	user := []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": unique}}
	roles, bindings := rbac("", "ClusterRole", "clusterroles"), rbac("", "ClusterRoleBinding", "clusterrolebindings")
	rules := map[string]any{
		unique + "-objects": map[string]any{"apiGroups": []any{"kopf.dev"}, "resources": []any{"*"}, "verbs": []any{"*"}},
		unique + "-cluster": map[string]any{"apiGroups": []any{"", "apiextensions.k8s.io"}, "resources": []any{"namespaces", "customresourcedefinitions", "events"}, "verbs": []any{"list", "watch", "create"}},
	}
	for name, rule := range rules {
		roles.create(name, map[string]any{"rules": []any{rule}})
		t.Cleanup(func() { roles.delete(name) })
	}
	ref := func(name string) map[string]any {
		return map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
	}
	bindings.create(unique, map[string]any{"roleRef": ref(unique + "-cluster"), "subjects": user})
	t.Cleanup(func() { bindings.delete(unique) })
	for _, namespace := range all {
		rbac(namespace, "RoleBinding", "rolebindings").create("operator", map[string]any{"roleRef": ref(unique + "-objects"), "subjects": user})
	}
	called, requests := &calls{}, &observer{}
	cfg := requests.config()
	cfg.Impersonate.UserName = unique
	operator := run(t, greeter(called), gopf.Cluster(cfg), gopf.Namespaces(unique+"-*"))
	for _, objects := range busy {
		objects.awaitHandled("example")
	}
	quiet := examples(t, all[7])
	quiet.create("example", nil)
	quiet.awaitHandled("example")
	kit.Await(t, "every namespace is watched", func() bool {
		follows, _ := requests.seen()
		return slices.Equal(all, slices.Compact(follows))
	})
	// Requests that begin at once may dial more connections, which are closed when they are not needed.
	kit.Eventually(t, func() error {
		if _, open := requests.seen(); open > len(all)/4 {
			return fmt.Errorf("%d connections for %d watches", open, len(all))
		}
		return nil
	})
	operator.Stop()
	if got := called.all(); len(got) != len(busy)+1 {
		t.Errorf("%d calls for %d objects: %q", len(got), len(busy)+1, got)
	}
}
