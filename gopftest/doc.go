// Package gopftest tests operators in milliseconds: handlers on their own, and
// whole operators on an in-memory Kubernetes API with the semantics of the real
// one, reached without sockets, so that they run in the virtual time of
// testing/synctest. The guide is docs/testing.md.
//
// A handler is called with an argument that [Change], [Event], [Tick], [Daemon] or
// [Subject] makes, by the operator's own code:
//
//	call := gopftest.Change(t, cluster, database)
//	err := createDatabase(t.Context(), call.Change)
//	after := call.Apply() // what the handler asked for is written
//
// An operator is run by [Start]:
//
//	synctest.Test(t, func(t *testing.T) {
//		cluster := gopftest.NewCluster(t, "kopf.dev/v1/kopfexamples", "v1/pods")
//		gopftest.Start(t, newOperator(), cluster)
//		cluster.Create(t, object)
//		synctest.Wait()         // everybody has reacted
//		time.Sleep(time.Hour)   // timers and retries, at no cost
//	})
//
// The same test can be run on a real control plane; see [AnyCluster].
//
// # What is true to the real API
//
// Discovery; lists with selectors, pages and versions; watches with resuming,
// bookmarks and streamed initial lists; creation, replacement, and patches of all
// four kinds; the subresources status and scale; generations; optimistic locking;
// finalizers and deletion marks; namespaces; definitions of custom resources, with
// pruning, defaulting and validation by their schemas; permissions by roles, for
// requests in the name of a user; admission webhooks; errors with the code, reason,
// message and details that clients look at; tables and partial metadata by the
// Accept header. A list of behaviours, conformance_test.go, runs against this
// cluster and against a real control plane and must agree.
//
// # What is not
//
// Only JSON is spoken. There are no admission plugins, and no controllers but the
// few that belong to the API itself: definitions become established, namespaces are
// emptied, dependents of deleted owners are collected. These act at once, in the
// same write, rather than a moment later, and without asking webhooks. Webhooks are
// not asked about scaling; their match conditions and reinvocation policies do not
// count. There are no roles but those that tests create. Scales cannot be applied.
// Well-known kinds get hardly any defaults. Unknown fields are pruned whatever the
// field validation of the request. Managed fields are kept from an object's first
// apply on.
//
// # Faults
//
// [Cluster.Fault] makes chosen requests fail, vanish, hang or lose their answer,
// and chosen streams stall, stutter or break; it also calls the test back at any
// request, so that an operator can be stopped exactly there. [CrashAtEveryWrite]
// does that for every write. What was asked of the API is in [Cluster.Requests].
package gopftest
