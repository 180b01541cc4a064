package gopftest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// inMemory implements hand for in-memory clusters.
type inMemory struct{ *Cluster }

func (m inMemory) create(obj metav1.Object) (*unstructured.Unstructured, error) {
	s, u, err := m.scopeOf(obj)
	if err != nil {
		return nil, err
	}
	return s.shown(s.create(u))
}

func (m inMemory) get(resource, namespace, name string) (*unstructured.Unstructured, error) {
	s, err := m.scopeFor(resource, namespace, name)
	if err != nil {
		return nil, err
	}
	return s.shown(s.get())
}

func (m inMemory) list(resource, namespace string) ([]*unstructured.Unstructured, error) {
	s, err := m.scopeFor(resource, namespace, "")
	if err != nil {
		return nil, err
	}
	p, err := s.list(context.Background(), &internalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	items := []*unstructured.Unstructured{}
	for _, e := range p.items {
		obj, _ := s.shown(e, nil)
		items = append(items, obj)
	}
	return items, nil
}

func (m inMemory) update(obj metav1.Object, subresource string) (*unstructured.Unstructured, error) {
	s, u, err := m.scopeOf(obj)
	if err != nil {
		return nil, err
	}
	s.subresource = subresource
	return s.shown(s.update(u))
}

func (m inMemory) patch(resource, namespace, name, subresource string, patch []byte) (*unstructured.Unstructured, error) {
	s, err := m.scopeFor(resource, namespace, name)
	if err != nil {
		return nil, err
	}
	s.subresource = subresource
	return s.shown(s.patch(types.MergePatchType, patch))
}

func (m inMemory) delete(resource, namespace, name string) error {
	s, err := m.scopeFor(resource, namespace, name)
	if err != nil {
		return err
	}
	_, _, err = s.delete(&metav1.DeleteOptions{})
	return err
}

func (m inMemory) define(k Kind) error { return m.Cluster.define(k) }

// await checks after every change, so no time passes in between.
func (m inMemory) await(ctx context.Context, resource string, look func() bool) error {
	s, err := m.scopeFor(resource, "", "")
	if err != nil {
		return err
	}
	for {
		m.store.mu.Lock()
		changed := s.table().changed
		m.store.mu.Unlock()
		if look() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// shown returns the object in the API version of the scope.
func (s *scope) shown(e *entry, err error) (*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	obj := e.object()
	obj.SetAPIVersion(s.apiVersion())
	return obj, nil
}

func (c *Cluster) scopeFor(resource, namespace, name string) (*scope, error) {
	res, versionName, ok := c.kinds.byText(resource)
	if !ok {
		return nil, fmt.Errorf("resource %q is not served; add it to the arguments of NewCluster", resource)
	}
	version, ok := res.version(versionName)
	if !ok {
		return nil, fmt.Errorf("resource %q: version %q is not served", resource, versionName)
	}
	if !res.Namespaced && namespace != "" {
		return nil, fmt.Errorf("resource %q is cluster-scoped; pass an empty namespace instead of %q", resource, namespace)
	}
	return &scope{cluster: c, resource: res, version: version, namespace: namespace, name: name}, nil
}

// scopeOf returns the scope for the kind of obj, and obj in untyped form.
func (c *Cluster) scopeOf(obj metav1.Object) (*scope, *unstructured.Unstructured, error) {
	u, err := untyped(obj)
	if err != nil {
		return nil, nil, err
	}
	gvk := u.GroupVersionKind()
	res, ok := c.kinds.byKind(gvk.GroupKind())
	if !ok {
		return nil, nil, fmt.Errorf("kind %s is not served; add its resource to the arguments of NewCluster", gvk)
	}
	version, ok := res.version(gvk.Version)
	if !ok {
		return nil, nil, fmt.Errorf("kind %s is not served in this version; define it by Cluster.Define", gvk)
	}
	if res.Namespaced && u.GetNamespace() == "" {
		u.SetNamespace("default")
	}
	return &scope{cluster: c, resource: res, version: version, namespace: u.GetNamespace(), name: u.GetName()}, u, nil
}

// objectsOf decodes the stored objects of a resource, sorted by namespace and name.
func objectsOf[T any](c *Cluster, group, plural, namespace string) []T {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	return objectsOfLocked[T](c, group, plural, namespace)
}

// objectsOfLocked is objectsOf for callers that hold the lock of the store.
func objectsOfLocked[T any](c *Cluster, group, plural, namespace string) []T {
	entries := slices.Collect(maps.Values(c.store.table(schema.GroupResource{Group: group, Resource: plural}).objects))
	slices.SortFunc(entries, func(a, b *entry) int { return a.key.compare(b.key) })
	var objects []T
	for _, e := range entries {
		if namespace != "" && namespace != e.key.namespace {
			continue
		}
		var obj T
		if err := json.Unmarshal(e.raw, &obj); err != nil {
			panic(fmt.Sprintf("gopftest: decode a stored object: %v", err)) // it was encoded from this type
		}
		objects = append(objects, obj)
	}
	return objects
}

func (m inMemory) keep(string, string) {} // the cluster ends with the test

func (m inMemory) kindOf(resource string) (schema.GroupVersionKind, bool) {
	s, err := m.scopeFor(resource, "", "")
	if err != nil {
		return schema.GroupVersionKind{}, false
	}
	return s.groupKind().WithVersion(s.version.name), true
}
