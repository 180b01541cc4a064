package gopftest

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// cleanupFinalizer keeps a definition until all of its objects are gone.
const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io"

func namespaceResource() schema.GroupResource { return schema.GroupResource{Resource: "namespaces"} }

// terminate starts the deletion of a namespace or a definition: it stays, marked as
// deleted, until its contents are gone. It returns false for all other objects.
func (s *scope) terminate(existing *entry) (*entry, bool) {
	if gr := s.resource.groupResource(); gr != namespaceResource() && gr != crdResource() {
		return nil, false
	}
	obj := existing.object()
	if s.isNamespace() {
		markDeleted(obj)
		unstructured.RemoveNestedField(obj.Object, "metadata", "deletionGracePeriodSeconds")
		_ = unstructured.SetNestedField(obj.Object, "Terminating", "status", "phase")
	} else {
		markDeleted(obj)
		if !slices.Contains(obj.GetFinalizers(), cleanupFinalizer) {
			obj.SetFinalizers(append(obj.GetFinalizers(), cleanupFinalizer))
		}
	}
	if s.dryRun || string(encode(obj.Object)) == string(existing.raw) {
		return newEntry(obj, existing.version), true
	}
	return s.store().put(s.resource.groupResource(), obj), true
}

func (s *scope) isNamespace() bool { return s.resource.groupResource() == namespaceResource() }

// onDefinition serves the resource of a definition. The deletion of a definition deletes
// its objects.
func (r *reactions) onDefinition(ev *event) {
	if ev.kind == watch.Deleted {
		r.cluster.kinds.remove(schema.ParseGroupResource(ev.old.key.name))
		r.cluster.store.table(schema.ParseGroupResource(ev.old.key.name)).wake()
		return
	}
	now := r.current(crdResource(), ev.new)
	if now == nil {
		return
	}
	r.cluster.establish(now)
	if now.deleted {
		gr := schema.ParseGroupResource(now.key.name)
		r.discardAll(gr, func(objectKey) bool { return true })
		r.finishDefinition(gr)
	}
}

// finishDefinition removes a deleted definition when its last object is gone.
func (r *reactions) finishDefinition(gr schema.GroupResource) {
	crd := r.cluster.store.table(crdResource()).objects[objectKey{name: gr.String()}]
	if crd == nil || !crd.deleted || len(r.cluster.store.table(gr).objects) > 0 {
		return
	}
	r.rewrite(crdResource(), crd, func(obj *unstructured.Unstructured) {
		obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == cleanupFinalizer }))
	})
}

// onNamespace deletes the contents of a deleted namespace.
func (r *reactions) onNamespace(ev *event) {
	if ev.new == nil || !ev.new.deleted || ev.old != nil && ev.old.deleted {
		return
	}
	namespace := ev.new.key.name
	for gr := range maps.Clone(r.cluster.store.tables) {
		r.discardAll(gr, func(key objectKey) bool { return key.namespace == namespace })
	}
	r.finishNamespace(namespace)
}

// finishNamespace removes a deleted namespace when it is empty.
func (r *reactions) finishNamespace(name string) {
	ns := r.cluster.store.table(namespaceResource()).objects[objectKey{name: name}]
	if name == "" || ns == nil || !ns.deleted {
		return
	}
	for _, t := range r.cluster.store.tables {
		for key := range t.objects {
			if key.namespace == name {
				return
			}
		}
	}
	obj := ns.object()
	if inside, _, _ := unstructured.NestedSlice(obj.Object, "spec", "finalizers"); len(inside) > 0 {
		unstructured.RemoveNestedField(obj.Object, "spec", "finalizers")
		ns = r.cluster.store.put(namespaceResource(), obj)
	}
	if len(obj.GetFinalizers()) == 0 {
		r.cluster.store.remove(namespaceResource(), ns)
	}
}

// discardAll deletes the objects of a resource whose keys are chosen, sorted by key.
func (r *reactions) discardAll(gr schema.GroupResource, chosen func(objectKey) bool) {
	t := r.cluster.store.table(gr)
	for _, e := range t.at(r.cluster.store.version) {
		if chosen(e.key) && t.objects[e.key] != nil {
			r.discard(gr, e, metav1.DeletePropagationBackground)
		}
	}
}
