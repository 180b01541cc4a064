package gopf

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Wake calls delayed handlers of an object now, instead of at their due time. Without
// ids, it wakes all delayed handlers of the object, including daemons and timers. An id
// includes the handler's sub-handlers; the id of a sub-handler means its parent.
//
// Wake may be called from any goroutine while the operator runs. Calls for one object
// are combined until its next turn. Unknown objects, unknown ids and handlers that are
// not delayed are ignored, and before [Operator.Run] it does nothing.
func (r *Resource[T]) Wake(namespace, name string, ids ...string) {
	if running := r.op.running.Load(); running != nil {
		(*running).Wake(r.of, namespace, name, ids)
	}
}

// WakeOwner wakes the controlling owner of a child on every event of the child.
// Handlers of the owner that return [Wait] until their children are ready are then
// called as soon as a child changes:
//
//	gopf.WakeOwner(gopf.For[*corev1.Pod](op, "v1/pods"), databases)
//
// It makes the timers of the owner due as well. Operators that declare the children use
// [Resource.Reconcile] instead, which does not.
//
// The owner reference must have the uid of the owner. A client that may create children
// can wake an owner whose uid it knows: one in its own namespace or a cluster-scoped one. Such
// calls use up no attempts; see [MaxAttempts].
func WakeOwner[C, P Object](children *Resource[C], parents *Resource[P]) {
	id := "wake-owner." + parents.of.String()
	children.OnEvent(storedName(id), func(_ context.Context, e *WatchEvent[C]) error {
		owner := metav1.GetControllerOfNoCopy(e.Object)
		if owner == nil || owner.UID == "" {
			return nil
		}
		if running := parents.op.running.Load(); running != nil {
			(*running).WakeOwner(parents.of, e.Object.GetNamespace(), string(owner.UID))
		}
		return nil
	})
}
