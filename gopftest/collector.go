package gopftest

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// location identifies an object: its resource, namespace and name.
type location struct {
	gr  schema.GroupResource
	key objectKey
}

// ownership maps owners to their dependents.
type ownership struct {
	objects    map[types.UID]location
	dependents map[types.UID]map[location]struct{}
}

func newOwnership() ownership {
	return ownership{objects: map[types.UID]location{}, dependents: map[types.UID]map[location]struct{}{}}
}

// record updates the maps after a change.
func (o *ownership) record(gr schema.GroupResource, ev *event) {
	if ev.old != nil {
		at := location{gr, ev.old.key}
		for _, ref := range ev.old.owners {
			delete(o.dependents[ref.UID], at)
			if len(o.dependents[ref.UID]) == 0 {
				delete(o.dependents, ref.UID)
			}
		}
		delete(o.objects, ev.old.uid)
	}
	if ev.new != nil {
		at := location{gr, ev.new.key}
		for _, ref := range ev.new.owners {
			if o.dependents[ref.UID] == nil {
				o.dependents[ref.UID] = map[location]struct{}{}
			}
			o.dependents[ref.UID][at] = struct{}{}
		}
		o.objects[ev.new.uid] = at
	}
}

// collect deletes objects whose owners are gone, as the garbage collector does.
func (r *reactions) collect(gr schema.GroupResource, ev *event) {
	if ev.kind == watch.Deleted {
		for _, at := range r.dependentsOf(ev.old.uid) {
			r.judge(at)
		}
		for _, ref := range ev.old.owners {
			r.release(ref.UID) // the owner may have waited for this dependent
		}
		return
	}
	if now := r.current(gr, ev.new); now != nil {
		if len(now.owners) > 0 {
			r.judge(location{gr, now.key})
		}
		if now.deleted {
			r.release(now.uid)
		}
	}
}

// dependentsOf returns the objects that name uid as an owner, sorted.
func (r *reactions) dependentsOf(uid types.UID) []location {
	return slices.SortedFunc(maps.Keys(r.owners.dependents[uid]), func(a, b location) int { return a.key.compare(b.key) })
}

// judge deletes the object if all of its owners are gone. If only some are gone, it
// removes their references.
func (r *reactions) judge(at location) {
	e := r.cluster.store.table(at.gr).objects[at.key]
	if e == nil || e.deleted {
		return
	}
	var gone []types.UID
	for _, ref := range e.owners {
		if r.absent(ref) {
			gone = append(gone, ref.UID)
		}
	}
	switch {
	case len(gone) == 0:
	case len(gone) == len(e.owners):
		r.discard(at.gr, e, metav1.DeletePropagationBackground)
	default:
		r.disown(at.gr, e, gone...)
	}
}

// absent reports whether the owner does not exist. If its kind is not served, the
// answer is unknown, and absent returns false.
func (r *reactions) absent(ref metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return false
	}
	_, served := r.cluster.kinds.byKind(schema.GroupKind{Group: gv.Group, Kind: ref.Kind})
	_, exists := r.owners.objects[ref.UID]
	return served && !exists
}

func (r *reactions) disown(gr schema.GroupResource, e *entry, owners ...types.UID) {
	r.rewrite(gr, e, func(obj *unstructured.Unstructured) {
		obj.SetOwnerReferences(slices.DeleteFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return slices.Contains(owners, ref.UID)
		}))
	})
}

// release processes the finalizers of a deleted owner. For "orphan", it removes the
// owner references of the dependents. For "foregroundDeletion", it deletes them first.
func (r *reactions) release(uid types.UID) {
	at, ok := r.owners.objects[uid]
	if !ok {
		return
	}
	e := r.cluster.store.table(at.gr).objects[at.key]
	if e == nil || !e.deleted {
		return
	}
	finalizers := e.object().GetFinalizers()
	switch {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		for _, child := range r.dependentsOf(uid) {
			if dep := r.cluster.store.table(child.gr).objects[child.key]; dep != nil {
				r.disown(child.gr, dep, uid)
			}
		}
		r.unfinalize(at, metav1.FinalizerOrphanDependents)
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		for _, child := range r.dependentsOf(uid) {
			if dep := r.cluster.store.table(child.gr).objects[child.key]; dep != nil && !dep.deleted {
				r.discard(child.gr, dep, metav1.DeletePropagationForeground)
			}
		}
		if !r.blocked(uid) {
			r.unfinalize(at, metav1.FinalizerDeleteDependents)
		}
	}
}

// blocked reports whether dependents exist that block the deletion of their owner.
func (r *reactions) blocked(uid types.UID) bool {
	for _, child := range r.dependentsOf(uid) {
		dep := r.cluster.store.table(child.gr).objects[child.key]
		if dep != nil && slices.ContainsFunc(dep.owners, func(ref metav1.OwnerReference) bool {
			return ref.UID == uid && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
		}) {
			return true
		}
	}
	return false
}

func (r *reactions) unfinalize(at location, finalizer string) {
	e := r.cluster.store.table(at.gr).objects[at.key]
	if e == nil {
		return
	}
	r.rewrite(at.gr, e, func(obj *unstructured.Unstructured) {
		obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == finalizer }))
	})
}
