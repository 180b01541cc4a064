//go:build !gopf_lean

package gopftest

import (
	"context"
	"fmt"
	"os"
	"slices"
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

// Variable is the environment variable with the path of the kubeconfig for
// [AnyCluster]. "gopf exec" sets it.
const Variable = "GOPF_TEST_KUBECONFIG"

// AnyCluster returns an in-memory cluster, or a real one if the environment variable
// GOPF_TEST_KUBECONFIG contains the path of a kubeconfig. The same tests then run in
// milliseconds during development, and on a real control plane by
//
//	gopf exec -- go test ./...
//
// Such tests cannot use a testing/synctest bubble or the features of in-memory clusters,
// such as faults. [Cluster.Wait] works on both.
func AnyCluster(t testing.TB, resources ...string) *Cluster {
	t.Helper()
	if kubeconfig := os.Getenv(Variable); kubeconfig != "" {
		return RealCluster(t, kubeconfig, resources...)
	}
	return NewCluster(t, resources...)
}

// RealCluster returns the cluster of the current context of a kubeconfig. It creates
// custom resource definitions for resources that the cluster does not serve; see
// [NewCluster]. When the test ends, all objects that it created through the methods of
// the cluster are deleted, and their finalizers removed. Definitions of resources and of
// [Cluster.Load] stay. Use [Cluster.Namespace] to keep tests apart.
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

// remote implements hand for real clusters.
type remote struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
	names  meta.RESTMapper // also resolves short names

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

// resource resolves the name of a resource in the form used by tests.
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

// resourceOf returns the resource for the kind of obj. A namespaced object without a
// namespace goes to "default".
func (r *remote) resourceOf(obj metav1.Object) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
	u, err := untyped(obj)
	if err != nil {
		return nil, nil, err
	}
	gvk := u.GroupVersionKind()
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		r.mapper.Reset() // the kind may be new
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

func (r *remote) keep(kind, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.created = slices.DeleteFunc(r.created, func(m made) bool { return m.kind == kind && m.name == name })
}

func (r *remote) kindOf(resource string) (schema.GroupVersionKind, bool) {
	parts := strings.Split(resource, "/")
	if len(parts) != 3 {
		return schema.GroupVersionKind{}, false
	}
	gvk, err := r.mapper.KindFor(schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]})
	return gvk, err == nil
}

// define creates a custom resource definition, and waits until it is served.
func (r *remote) define(k Kind) error {
	if !strings.Contains(k.Group, ".") {
		return fmt.Errorf("kind %s in group %q is not served; the group of a custom resource must contain a dot", k.Plural, k.Group)
	}
	crd := newCRD(k.named())
	if _, err := r.create(crd); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	r.keep("CustomResourceDefinition", crd.Name)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.await(ctx, "", func() bool {
		_, err := r.list(k.Group+"/"+k.Version+"/"+k.Plural, "")
		return err == nil
	})
}

// await polls every 50 ms.
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

// tidy deletes the objects that the test created, newest first, and waits until they are
// gone. The next test can then use the same names. It removes finalizers, because the
// operator that would remove them may have stopped.
func (r *remote) tidy() {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i := len(r.created) - 1; i >= 0; i-- {
		one := r.created[i]
		err := one.resource.Delete(ctx, one.name, metav1.DeleteOptions{})
		if own := one.kind == "Namespace" || one.kind == "CustomResourceDefinition"; err == nil && !own { // their finalizers belong to the API server
			// An error means that the object is already gone.
			_, _ = one.resource.Patch(ctx, one.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
	}
	for _, one := range r.created {
		_ = r.await(ctx, "", func() bool { // an object that stays is not a failure of this test
			_, err := one.resource.Get(ctx, one.name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
}
