// Package gopftest tests operators in milliseconds: an in-memory Kubernetes API
// with the semantics of the real one, reached without sockets, so that whole
// operators run in the virtual time of testing/synctest.
//
//	synctest.Test(t, func(t *testing.T) {
//		cluster := gopftest.NewCluster(t, "kopf.dev/v1/kopfexamples", "v1/pods")
//		client := dynamic.NewForConfigOrDie(cluster.RESTConfig())
//		…
//		cluster.Create(t, object)
//		synctest.Wait()         // everybody has reacted
//		time.Sleep(time.Hour)   // timers and retries, at no cost
//	})
//
// # What is true to the real API
//
// Discovery; lists with selectors, pages and versions; watches with resuming,
// bookmarks and streamed initial lists; creation, replacement, and patches of all
// four kinds; the status subresource; generations; optimistic locking; finalizers
// and deletion marks; namespaces; definitions of custom resources, with pruning,
// defaulting and validation by their schemas; errors with the code, reason,
// message and details that clients look at; tables and partial metadata by the
// Accept header. A list of behaviours, conformance_test.go, runs against this
// cluster and against a real control plane and must agree.
//
// # What is not
//
// Only JSON is spoken. There is no admission, no authorization, and there are no
// controllers but the few that belong to the API itself: definitions become
// established, namespaces are emptied, dependents of deleted owners are collected.
// These act at once, in the same write, rather than a moment later. Well-known
// kinds get hardly any defaults. Managed fields are kept from an object's first
// apply on.
//
// # Faults
//
// [Cluster.Fault] makes chosen requests fail, vanish, hang or lose their answer,
// and chosen streams stall, stutter or break; it also calls the test back at any
// request, so that an operator can be stopped exactly there. What was asked of
// the API is in [Cluster.Requests].
package gopftest
