package gopftest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// The methods in this file are the test's own hand in the cluster. They follow
// the rules of the API, but are not requests: they are not logged, no fault
// strikes them, and they fail the test when the API refuses.
//
// Resources are named as in [NewCluster], or shorter where it is clear: by the
// plural, singular, short name or kind. The namespace is "" for cluster-wide ones.

// Create creates an object; without a namespace, in "default". It returns the
// object as the API answers.
func (c *Cluster) Create(t testing.TB, obj metav1.Object) *unstructured.Unstructured {
	t.Helper()
	s, u := c.scopeOf(t, obj)
	e, err := s.create(u)
	return result(t, "create "+s.String(), s, e, err)
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
	s := c.scopeFor(t, resource, namespace, name)
	e, err := s.get()
	return result(t, "get "+s.String(), s, e, err)
}

// Lookup returns an object, if it exists.
func (c *Cluster) Lookup(t testing.TB, resource, namespace, name string) (*unstructured.Unstructured, bool) {
	t.Helper()
	s := c.scopeFor(t, resource, namespace, name)
	e, err := s.get()
	if apierrors.IsNotFound(err) {
		return nil, false
	}
	return result(t, "get "+s.String(), s, e, err), true
}

// Get returns an object as a T, a pointer to a struct; it must exist.
func Get[T metav1.Object](t testing.TB, c *Cluster, resource, namespace, name string) T {
	t.Helper()
	obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	if err := json.Unmarshal(encode(c.Get(t, resource, namespace, name).Object), obj); err != nil {
		t.Fatalf("decode %s %s/%s into %T: %v", resource, namespace, name, obj, err)
	}
	return obj
}

// List returns the objects of a namespace, or of all for "", in order.
func (c *Cluster) List(t testing.TB, resource, namespace string) []*unstructured.Unstructured {
	t.Helper()
	s := c.scopeFor(t, resource, namespace, "")
	p, err := s.list(context.Background(), &internalversion.ListOptions{})
	if err != nil {
		t.Fatalf("list %s: %v", s, err)
	}
	items := []*unstructured.Unstructured{}
	for _, e := range p.items {
		items = append(items, result(t, "list", s, e, nil))
	}
	return items
}

// Update replaces an object, all but its status if that is a subresource.
func (c *Cluster) Update(t testing.TB, obj metav1.Object) *unstructured.Unstructured {
	t.Helper()
	s, u := c.scopeOf(t, obj)
	e, err := s.update(u)
	return result(t, "update "+s.String(), s, e, err)
}

// UpdateStatus replaces the status of an object.
func (c *Cluster) UpdateStatus(t testing.TB, obj metav1.Object) *unstructured.Unstructured {
	t.Helper()
	s, u := c.scopeOf(t, obj)
	s.subresource = "status"
	e, err := s.update(u)
	return result(t, "update the status of "+s.String(), s, e, err)
}

// Patch applies a merge patch, given as JSON (string, []byte) or as a value to be
// encoded.
func (c *Cluster) Patch(t testing.TB, resource, namespace, name string, patch any) *unstructured.Unstructured {
	t.Helper()
	s := c.scopeFor(t, resource, namespace, name)
	e, err := s.patch(types.MergePatchType, patchBytes(patch))
	return result(t, "patch "+s.String(), s, e, err)
}

// PatchStatus applies a merge patch through the status subresource.
func (c *Cluster) PatchStatus(t testing.TB, resource, namespace, name string, patch any) *unstructured.Unstructured {
	t.Helper()
	s := c.scopeFor(t, resource, namespace, name)
	s.subresource = "status"
	e, err := s.patch(types.MergePatchType, patchBytes(patch))
	return result(t, "patch the status of "+s.String(), s, e, err)
}

// Delete deletes an object; one with finalizers is only marked.
func (c *Cluster) Delete(t testing.TB, resource, namespace, name string) {
	t.Helper()
	s := c.scopeFor(t, resource, namespace, name)
	if _, _, err := s.delete(&metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete %s: %v", s, err)
	}
}

// String names what the scope is about in messages of tests.
func (s *scope) String() string {
	text := s.resource.groupResource().String()
	if s.name != "" {
		text += " " + types.NamespacedName{Namespace: s.namespace, Name: s.name}.String()
	}
	return text
}

func result(t testing.TB, action string, s *scope, e *entry, err error) *unstructured.Unstructured {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", action, err)
	}
	obj := e.object()
	obj.SetAPIVersion(s.apiVersion())
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

func (c *Cluster) scopeFor(t testing.TB, resource, namespace, name string) *scope {
	t.Helper()
	res, versionName, ok := c.kinds.byText(resource)
	if !ok {
		t.Fatalf("resource %q is not served; name it in NewCluster", resource)
	}
	version, ok := res.version(versionName)
	if !ok {
		t.Fatalf("resource %q: version %q is not served", resource, versionName)
	}
	if !res.Namespaced && namespace != "" {
		t.Fatalf("resource %q is cluster-wide, but the namespace %q is given", resource, namespace)
	}
	return &scope{cluster: c, resource: res, version: version, namespace: namespace, name: name}
}

// scopeOf finds the resource of an object by its type, and turns the object into
// the untyped form.
func (c *Cluster) scopeOf(t testing.TB, obj metav1.Object) (*scope, *unstructured.Unstructured) {
	t.Helper()
	var content map[string]any
	if err := utiljson.Unmarshal(encode(obj), &content); err != nil {
		t.Fatalf("encode %T: %v", obj, err)
	}
	u := &unstructured.Unstructured{Object: content}
	gvk, err := kindOf(obj, u)
	if err != nil {
		t.Fatal(err)
	}
	u.SetGroupVersionKind(gvk)
	res, ok := c.kinds.byKind(gvk.GroupKind())
	if !ok {
		t.Fatalf("kind %s is not served; name its resource in NewCluster", gvk)
	}
	version, ok := res.version(gvk.Version)
	if !ok {
		t.Fatalf("kind %s is not served in that version", gvk)
	}
	if res.Namespaced && u.GetNamespace() == "" {
		u.SetNamespace("default")
	}
	return &scope{cluster: c, resource: res, version: version, namespace: u.GetNamespace(), name: u.GetName()}, u
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

// objectsOf decodes the stored objects of a resource, in order.
func objectsOf[T any](c *Cluster, group, plural, namespace string) []T {
	c.store.mu.Lock()
	entries := slices.Collect(maps.Values(c.store.table(schema.GroupResource{Group: group, Resource: plural}).objects))
	c.store.mu.Unlock()
	slices.SortFunc(entries, func(a, b *entry) int { return a.key.compare(b.key) })
	var objects []T
	for _, e := range entries {
		if namespace != "" && namespace != e.key.namespace {
			continue
		}
		var obj T
		if err := json.Unmarshal(e.raw, &obj); err != nil {
			panic(fmt.Sprintf("gopftest: a stored object: %v", err)) // it went through its type
		}
		objects = append(objects, obj)
	}
	return objects
}
