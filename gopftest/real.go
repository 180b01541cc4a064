package gopftest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// Variable is the environment variable that names the kubeconfig of the cluster
// for [AnyCluster]. "gopf exec" sets it.
const Variable = "GOPF_TEST_KUBECONFIG"

// AnyCluster is a cluster in memory, or the real one whose kubeconfig is named by
// the environment variable GOPF_TEST_KUBECONFIG: so the same tests run in
// milliseconds while one works, and on a real control plane by
//
//	gopf exec -- go test ./...
//
// Such tests cannot be in a testing/synctest bubble, nor use what only a cluster
// in memory can do, such as faults; [Cluster.Wait] is made for both.
func AnyCluster(t testing.TB, resources ...string) *Cluster {
	t.Helper()
	if kubeconfig := os.Getenv(Variable); kubeconfig != "" {
		return RealCluster(t, kubeconfig, resources...)
	}
	return NewCluster(t, resources...)
}

// RealCluster is the cluster that a kubeconfig tells of, in its current context.
// Resources that it does not have are defined, as in [NewCluster]. What the test
// creates through the methods of the cluster is deleted at its end, finalizers or
// not.
func RealCluster(t testing.TB, kubeconfig string, resources ...string) *Cluster {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatalf("RealCluster: %v", err)
	}
	cfg.QPS = -1
	h, err := newRemote(cfg)
	if err != nil {
		t.Fatalf("RealCluster: %v", err)
	}
	c := &Cluster{config: cfg, hand: h}
	t.Cleanup(h.tidy)
	for _, name := range resources {
		k, err := parseKind(name)
		if err == nil && !h.serves(k) {
			err = h.define(k)
		}
		if err != nil {
			t.Fatalf("RealCluster: %v", err)
		}
	}
	return c
}

// Real says that the cluster is not in memory.
func (c *Cluster) Real() bool { return c.config != nil }

// memoryOnly keeps tests from believing that they have done something to a real
// cluster.
func (c *Cluster) memoryOnly(what string) {
	if c.Real() {
		panic("gopftest: " + what + " is for clusters in memory only: use NewCluster, or ask Cluster.Real")
	}
}

// remote is the test's hand in a real cluster.
type remote struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
	names  meta.RESTMapper // knows short names, too

	mu      sync.Mutex
	created []made
}

// made is an object that the test has created.
type made struct {
	resource dynamic.ResourceInterface
	name     string
	kind     string
}

func newRemote(cfg *rest.Config) (*remote, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	asks, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(asks)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	return &remote{client: client, mapper: mapper, names: restmapper.NewShortcutExpander(mapper, cached, nil)}, nil
}

func (r *remote) serves(k Kind) bool {
	r.mapper.Reset()
	_, err := r.mapper.ResourceFor(schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Plural})
	return err == nil
}

// resource finds a resource as tests name it.
func (r *remote) resource(text, namespace string) (dynamic.ResourceInterface, error) {
	parts := strings.Split(text, "/")
	var gvr schema.GroupVersionResource
	switch len(parts) {
	case 2:
		gvr = schema.GroupVersionResource{Version: parts[0], Resource: parts[1]}
	case 3:
		gvr = schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
	default:
		found, err := r.names.ResourceFor(schema.ParseGroupResource(strings.ToLower(text)).WithVersion(""))
		if err != nil {
			return nil, err
		}
		gvr = found
	}
	return r.client.Resource(gvr).Namespace(namespace), nil
}

// resourceOf finds the resource of an object, which is put into the namespace
// "default" if it needs one.
func (r *remote) resourceOf(obj metav1.Object) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
	u, err := untyped(obj)
	if err != nil {
		return nil, nil, err
	}
	gvk := u.GroupVersionKind()
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		r.mapper.Reset() // it may have been defined since
		mapping, err = r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && u.GetNamespace() == "" {
		u.SetNamespace("default")
	}
	return r.client.Resource(mapping.Resource).Namespace(u.GetNamespace()), u, nil
}

func (r *remote) create(obj metav1.Object) (*unstructured.Unstructured, error) {
	resource, u, err := r.resourceOf(obj)
	if err != nil {
		return nil, err
	}
	created, err := resource.Create(context.Background(), u, metav1.CreateOptions{})
	if err == nil {
		r.mu.Lock()
		r.created = append(r.created, made{resource, created.GetName(), created.GetKind()})
		r.mu.Unlock()
	}
	return created, err
}

func (r *remote) get(resource, namespace, name string) (*unstructured.Unstructured, error) {
	found, err := r.resource(resource, namespace)
	if err != nil {
		return nil, err
	}
	return found.Get(context.Background(), name, metav1.GetOptions{})
}

func (r *remote) list(resource, namespace string) ([]*unstructured.Unstructured, error) {
	found, err := r.resource(resource, namespace)
	if err != nil {
		return nil, err
	}
	list, err := found.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	items := []*unstructured.Unstructured{}
	for i := range list.Items {
		items = append(items, &list.Items[i])
	}
	return items, nil
}

func (r *remote) update(obj metav1.Object, subresource string) (*unstructured.Unstructured, error) {
	resource, u, err := r.resourceOf(obj)
	if err != nil {
		return nil, err
	}
	if subresource != "" {
		return resource.Update(context.Background(), u, metav1.UpdateOptions{}, subresource)
	}
	return resource.Update(context.Background(), u, metav1.UpdateOptions{})
}

func (r *remote) patch(resource, namespace, name, subresource string, patch []byte) (*unstructured.Unstructured, error) {
	found, err := r.resource(resource, namespace)
	if err != nil {
		return nil, err
	}
	var subresources []string
	if subresource != "" {
		subresources = append(subresources, subresource)
	}
	return found.Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
}

func (r *remote) delete(resource, namespace, name string) error {
	found, err := r.resource(resource, namespace)
	if err != nil {
		return err
	}
	return found.Delete(context.Background(), name, metav1.DeleteOptions{})
}

// define creates the definition of a custom resource, and waits until it counts.
func (r *remote) define(k Kind) error {
	if !strings.Contains(k.Group, ".") {
		return fmt.Errorf("kind %s in group %q is not served, and cannot be a custom resource", k.Plural, k.Group)
	}
	if _, err := r.create(newCRD(k.named())); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.await(ctx, "", func() bool {
		_, err := r.list(k.Group+"/"+k.Version+"/"+k.Plural, "")
		return err == nil
	})
}

// await looks every now and then.
func (r *remote) await(ctx context.Context, _ string, look func() bool) error {
	for !look() {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// tidy deletes what the test has created, the newest first, and waits until it is
// gone, so that the next test may use the same names. Whoever is to remove
// finalizers may be gone already.
func (r *remote) tidy() {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i := len(r.created) - 1; i >= 0; i-- {
		one := r.created[i]
		err := one.resource.Delete(ctx, one.name, metav1.DeleteOptions{})
		if own := one.kind == "Namespace" || one.kind == "CustomResourceDefinition"; err == nil && !own { // these have the server's own
			// An error means that it is gone, which is what is wanted.
			_, _ = one.resource.Patch(ctx, one.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
	}
	for _, one := range r.created {
		_ = r.await(ctx, "", func() bool { // what does not go is nobody's fault here
			_, err := one.resource.Get(ctx, one.name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
}
