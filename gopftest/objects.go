package gopftest

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// hand executes the test's own reads and writes, in memory or on a real cluster.
// Resources are named as in [NewCluster] or shorter.
type hand interface {
	create(obj metav1.Object) (*unstructured.Unstructured, error)
	get(resource, namespace, name string) (*unstructured.Unstructured, error)
	list(resource, namespace string) ([]*unstructured.Unstructured, error)
	update(obj metav1.Object, subresource string) (*unstructured.Unstructured, error)
	patch(resource, namespace, name, subresource string, patch []byte) (*unstructured.Unstructured, error)
	delete(resource, namespace, name string) error
	define(Kind) error
	// kindOf returns the kind of the objects of a resource. ok is false if the resource
	// is not served.
	kindOf(resource string) (kind schema.GroupVersionKind, ok bool)
	// keep leaves an object in the cluster when the test ends.
	keep(kind, name string)
	// await calls look until it returns true or the context is done. It calls look
	// again whenever an object of the resource may have changed.
	await(ctx context.Context, resource string, look func() bool) error
}

// The methods in this file read and write objects on behalf of the test. They follow
// the rules of the API. On an in-memory cluster they are not requests: they are not
// logged, not subject to faults, and need no permission. They fail the test if the API
// returns an error.
//
// A resource is named as in [NewCluster], or by its plural, singular, short name or
// kind if that is unambiguous. The namespace of cluster-scoped resources is "".

// Create creates an object and returns it as stored. An object without a namespace is
// created in "default". The TypeMeta of obj must be set, except for types of client-go's
// scheme, and for types that an operator declares which was started on the cluster. On an
// in-memory cluster, it is not needed either if the type has the name of a custom kind.
func (c *Cluster) Create(t testing.TB, obj metav1.Object) *unstructured.Unstructured {
	t.Helper()
	return must(t, "create "+nameOf(obj))(c.hand.create(c.withKind(obj)))
}

// CreateNamespace creates a namespace and returns it.
func (c *Cluster) CreateNamespace(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("v1")
	u.SetKind("Namespace")
	u.SetName(name)
	return c.Create(t, u)
}

// Get returns an object. It fails the test if the object does not exist.
func (c *Cluster) Get(t testing.TB, resource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	return must(t, "get "+resource+" "+namespace+"/"+name)(c.hand.get(resource, namespace, name))
}

// Lookup returns an object, and whether it exists.
func (c *Cluster) Lookup(t testing.TB, resource, namespace, name string) (*unstructured.Unstructured, bool) {
	t.Helper()
	obj, err := c.hand.get(resource, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, false
	}
	return must(t, "get "+resource+" "+namespace+"/"+name)(obj, err), true
}

// Get returns an object decoded as T, which must be a pointer to a struct. It fails the
// test if the object does not exist.
func Get[T metav1.Object](t testing.TB, c *Cluster, resource, namespace, name string) T {
	t.Helper()
	return decodeAs[T](t, c.Get(t, resource, namespace, name))
}

// List returns the objects of a namespace, sorted by namespace and name. "" means all
// namespaces.
func (c *Cluster) List(t testing.TB, resource, namespace string) []*unstructured.Unstructured {
	t.Helper()
	items, err := c.hand.list(resource, namespace)
	if err != nil {
		t.Fatalf("list %s: %v", resource, err)
	}
	return items
}

// Update replaces an object, and returns it as stored. If the kind has a status
// subresource, the status is not changed.
func (c *Cluster) Update(t testing.TB, obj metav1.Object) *unstructured.Unstructured {
	t.Helper()
	return must(t, "update "+nameOf(obj))(c.hand.update(c.withKind(obj), ""))
}

// UpdateStatus replaces the status of an object, and returns the object as stored.
func (c *Cluster) UpdateStatus(t testing.TB, obj metav1.Object) *unstructured.Unstructured {
	t.Helper()
	return must(t, "update the status of "+nameOf(obj))(c.hand.update(c.withKind(obj), "status"))
}

// Patch applies a merge patch, and returns the object as stored. The patch is JSON in a
// string or []byte, or a value to encode as JSON.
func (c *Cluster) Patch(t testing.TB, resource, namespace, name string, patch any) *unstructured.Unstructured {
	t.Helper()
	return must(t, "patch "+resource+" "+namespace+"/"+name)(c.hand.patch(resource, namespace, name, "", patchBytes(patch)))
}

// PatchStatus is [Cluster.Patch] through the status subresource.
func (c *Cluster) PatchStatus(t testing.TB, resource, namespace, name string, patch any) *unstructured.Unstructured {
	t.Helper()
	return must(t, "patch the status of "+resource+" "+namespace+"/"+name)(c.hand.patch(resource, namespace, name, "status", patchBytes(patch)))
}

// Delete deletes an object. An object with finalizers is only marked as deleted.
func (c *Cluster) Delete(t testing.TB, resource, namespace, name string) {
	t.Helper()
	if err := c.hand.delete(resource, namespace, name); err != nil {
		t.Fatalf("delete %s %s/%s: %v", resource, namespace, name, err)
	}
}

// Define makes the cluster serve further kinds, or further versions of a kind. Kinds
// outside of the API groups of Kubernetes become custom resources.
func (c *Cluster) Define(t testing.TB, kinds ...Kind) {
	t.Helper()
	failures := make([]error, len(kinds))
	var all sync.WaitGroup
	for i, k := range kinds {
		define := func() { failures[i] = c.hand.define(k) }
		if c.Real() {
			all.Go(define) // the API server serves a new kind only after a second
		} else {
			define()
		}
	}
	all.Wait()
	for i, err := range failures {
		if err != nil {
			t.Fatalf("define %s: %v", kinds[i].Plural, err)
		}
	}
}

func must(t testing.TB, action string) func(*unstructured.Unstructured, error) *unstructured.Unstructured {
	return func(obj *unstructured.Unstructured, err error) *unstructured.Unstructured {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", action, err)
		}
		return obj
	}
}

func nameOf(obj metav1.Object) string {
	return fmt.Sprintf("%T %s/%s", obj, obj.GetNamespace(), obj.GetName())
}

func decodeAs[T metav1.Object](t testing.TB, u *unstructured.Unstructured) T {
	t.Helper()
	if same, ok := any(u).(T); ok {
		return same
	}
	obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	if err := utiljson.Unmarshal(encode(u.Object), obj); err != nil {
		t.Fatalf("decode %s into %T: %v", nameOf(u), obj, err)
	}
	return obj
}

func patchBytes(patch any) []byte {
	switch p := patch.(type) {
	case string:
		return []byte(p)
	case []byte:
		return p
	default:
		return encode(p)
	}
}

// untyped converts an object to unstructured form, including its kind.
func untyped(obj metav1.Object) (*unstructured.Unstructured, error) {
	var content map[string]any
	if err := utiljson.Unmarshal(encode(obj), &content); err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	u := &unstructured.Unstructured{Object: content}
	gvk, err := kindOf(obj, u)
	if err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

func kindOf(obj metav1.Object, u *unstructured.Unstructured) (schema.GroupVersionKind, error) {
	if gvk := u.GroupVersionKind(); gvk.Kind != "" && gvk.Version != "" {
		return gvk, nil
	}
	if typed, ok := obj.(runtime.Object); ok {
		if kinds, _, err := knownTypes().ObjectKinds(typed); err == nil {
			return kinds[0], nil
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("%T: unknown kind; set its TypeMeta (apiVersion and kind)", obj)
}
