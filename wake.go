package gopf

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Wake makes delayed handlers of an object due now instead of at the time they
// asked for: those with the ids, their sub-handlers included, or all. The id of a
// sub-handler stands for the handler that declares it.
//
// Wake may be called from any goroutine while the operator runs, as often as
// needed: calls for one object are joined until its next turn. Unknown objects,
// unknown ids and handlers that are not delayed are ignored.
func (r *Resource[T]) Wake(namespace, name string, ids ...string) {
	if running := r.op.running.Load(); running != nil {
		(*running).Wake(r.of, namespace, name, ids)
	}
}

// WakeOwner wakes the controlling owner of a child on every event of the child,
// so that handlers which wait for their children need not wait longer than
// necessary:
//
//	gopf.WakeOwner(gopf.For[*corev1.Pod](op, "v1/pods"), databases)
func WakeOwner[C, P Object](children *Resource[C], parents *Resource[P]) {
	id := "wake-owner." + parents.of.String()
	children.OnEvent(storedName(id), func(_ context.Context, e *Event[C]) error {
		owner := metav1.GetControllerOfNoCopy(e.Object)
		if owner == nil {
			return nil
		}
		parents.Wake(e.Object.GetNamespace(), owner.Name)
		if e.Object.GetNamespace() != "" {
			parents.Wake("", owner.Name) // it may be cluster-scoped
		}
		return nil
	})
}
