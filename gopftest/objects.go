package gopftest

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// hand does what a test asks for to objects: in memory, or in a real cluster.
// Resources are named as in [NewCluster] or shorter.
type hand interface {
	create(obj metav1.Object) (*unstructured.Unstructured, error)
	get(resource, namespace, name string) (*unstructured.Unstructured, error)
	list(resource, namespace string) ([]*unstructured.Unstructured, error)
	update(obj metav1.Object, subresource string) (*unstructured.Unstructured, error)
	patch(resource, namespace, name, subresource string, patch []byte) (*unstructured.Unstructured, error)
	delete(resource, namespace, name string) error
	define(Kind) error
	// await returns when an object of the resource may have changed since the last
	// look, or the context is done.
	await(ctx context.Context, resource string, look func() bool) error
}

// The methods of clusters in this file are the test's own hand in the cluster.
// They follow the rules of the API, but in memory they are not requests: they are
// not logged, no fault strikes them, and no permission is needed. They fail the
// test when the API refuses.
//
// Resources are named as in [NewCluster], or shorter where it is clear: by the
// plural, singular, short name or kind. The namespace is "" for cluster-wide ones.

// Create creates an object; without a namespace, in "default". It returns the
// object as the API answers.
func (c *Cluster) Create(t testing.TB, obj metav1.Object) *unstructured.Unstructured {
	t.Helper()
	return must(t, "create "+nameOf(obj))(c.hand.create(obj))
}

// CreateNamespace creates a namespace.
func (c *Cluster) CreateNamespace(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("v1")
	u.SetKind("Namespace")
	u.SetName(name)
	return c.Create(t, u)
}

// Get returns an object; it must exist.
func (c *Cluster) Get(t testing.TB, resource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	return must(t, "get "+resource+" "+namespace+"/"+name)(c.hand.get(resource, namespace, name))
}

// Lookup returns an object, if it exists.
func (c *Cluster) Lookup(t testing.TB, resource, namespace, name string) (*unstructured.Unstructured, bool) {
	t.Helper()
	obj, err := c.hand.get(resource, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, false
	}
	return must(t, "get "+resource+" "+namespace+"/"+name)(obj, err), true
}

// Get returns an object as a T, a pointer to a struct; it must exist.
func Get[T metav1.Object](t testing.TB, c *Cluster, resource, namespace, name string) T {
	t.Helper()
	return decodeAs[T](t, c.Get(t, resource, namespace, name))
}

// List returns the objects of a namespace, or of all for "", in order.
func (c *Cluster) List(t testing.TB, resource, namespace string) []*unstructured.Unstructured {
	t.Helper()
	items, err := c.hand.list(resource, namespace)
	if err != nil {
		t.Fatalf("list %s: %v", resource, err)
	}
	return items
}

// Update replaces an object, all but its status if that is a subresource.
func (c *Cluster) Update(t testing.TB, obj metav1.Object) *unstructured.Unstructured {
	t.Helper()
	return must(t, "update "+nameOf(obj))(c.hand.update(obj, ""))
}

// UpdateStatus replaces the status of an object.
func (c *Cluster) UpdateStatus(t testing.TB, obj metav1.Object) *unstructured.Unstructured {
	t.Helper()
	return must(t, "update the status of "+nameOf(obj))(c.hand.update(obj, "status"))
}

// Patch applies a merge patch, given as JSON (string, []byte) or as a value to be
// encoded.
func (c *Cluster) Patch(t testing.TB, resource, namespace, name string, patch any) *unstructured.Unstructured {
	t.Helper()
	return must(t, "patch "+resource+" "+namespace+"/"+name)(c.hand.patch(resource, namespace, name, "", patchBytes(patch)))
}

// PatchStatus applies a merge patch through the status subresource.
func (c *Cluster) PatchStatus(t testing.TB, resource, namespace, name string, patch any) *unstructured.Unstructured {
	t.Helper()
	return must(t, "patch the status of "+resource+" "+namespace+"/"+name)(c.hand.patch(resource, namespace, name, "status", patchBytes(patch)))
}

// Delete deletes an object; one with finalizers is only marked.
func (c *Cluster) Delete(t testing.TB, resource, namespace, name string) {
	t.Helper()
	if err := c.hand.delete(resource, namespace, name); err != nil {
		t.Fatalf("delete %s %s/%s: %v", resource, namespace, name, err)
	}
}

// Define makes the cluster serve more kinds, or further versions of those it has.
// Kinds outside of Kubernetes' own groups become custom resources.
func (c *Cluster) Define(t testing.TB, kinds ...Kind) {
	t.Helper()
	for _, k := range kinds {
		if err := c.hand.define(k); err != nil {
			t.Fatalf("define %s: %v", k.Plural, err)
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

// untyped turns an object into JSON with its kind in it.
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
		if kinds, _, err := scheme.Scheme.ObjectKinds(typed); err == nil {
			return kinds[0], nil
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("%T: set its TypeMeta (apiVersion and kind)", obj)
}
