package call

import "gopf.dev/gopf/internal/queue"

// Acquire waits for a slot for an object in the namespace, as [queue.Slots.Acquire] does. A
// nil review means that the object is in the cluster: then the namespaces share the slots.
//
// Any network peer can send reviews of objects in namespaces that it invents. So the clients
// share the slots for reviews. An API server is one client, which sends the reviews of all
// tenants: inside the share of a client, namespaces take turns.
func Acquire(slots *queue.Slots, review *Review, namespace string, done, stopping <-chan struct{}) (release func(), ok bool) {
	if review == nil {
		return slots.Acquire(namespace, done, stopping)
	}
	return slots.AcquireIn(review.Client, namespace, done, stopping)
}
