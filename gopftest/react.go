package gopftest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// reactions are the few controllers that belong to the API itself. They act immediately,
// within the same write, while the store is locked.
type reactions struct {
	cluster *Cluster
	owners  ownership
	pending []change
	busy    bool
}

type change struct {
	gr schema.GroupResource
	ev *event
}

// add reacts to a change. Changes made by a reaction are queued behind it.
func (r *reactions) add(gr schema.GroupResource, ev *event) {
	r.owners.record(gr, ev)
	r.pending = append(r.pending, change{gr, ev})
	if r.busy {
		return
	}
	r.busy = true
	for len(r.pending) > 0 {
		next := r.pending[0]
		r.pending = r.pending[1:]
		r.react(next.gr, next.ev)
	}
	r.busy = false
}

func (r *reactions) react(gr schema.GroupResource, ev *event) {
	switch gr {
	case crdResource():
		r.onDefinition(ev)
	case namespaceResource():
		r.onNamespace(ev)
	}
	r.collect(gr, ev)
	if ev.kind == watch.Deleted {
		r.finishNamespace(ev.old.key.namespace)
		r.finishDefinition(gr)
	}
}

// current returns the newest state of the object of a change. nil means that the object
// is deleted or replaced by another object of the same name.
func (r *reactions) current(gr schema.GroupResource, e *entry) *entry {
	if now := r.cluster.store.table(gr).objects[e.key]; now != nil && now.uid == e.uid {
		return now
	}
	return nil
}

// rewrite changes an object. It removes a deleted object that loses its last finalizer.
func (r *reactions) rewrite(gr schema.GroupResource, e *entry, edit func(*unstructured.Unstructured)) {
	obj := e.object()
	edit(obj)
	_ = normalizeMetadata(obj) // the metadata was valid before
	if emptied(obj, e.object()) {
		r.cluster.store.remove(gr, e)
		return
	}
	r.cluster.store.put(gr, obj)
}

// discard deletes an object as a client would.
func (r *reactions) discard(gr schema.GroupResource, e *entry, policy metav1.DeletionPropagation) {
	res, ok := r.cluster.kinds.byName(gr)
	if !ok {
		return
	}
	s := &scope{cluster: r.cluster, resource: res, version: res.versions[0], namespace: e.key.namespace, name: e.key.name}
	_, _, _ = s.deleteLocked(&metav1.DeleteOptions{PropagationPolicy: &policy}) // cannot fail: the object exists, and there are no preconditions
}
