// Package gopftest is a test kit for operators. It calls single handlers, and runs whole
// operators on an in-memory Kubernetes API with the semantics of the real one. The API
// is reached without sockets, so tests run in the virtual time of testing/synctest and
// take milliseconds. The guide is docs/testing.md.
//
// To test a handler, call it with an argument from [Change], [Event], [Tick], [Daemon],
// [Subject] or [Review]. The framework's own code builds these arguments:
//
//	call := gopftest.Change(t, cluster, database)
//	err := createDatabase(t.Context(), call.Change)
//	after := call.Apply() // writes the handler's changes
//
// To test a whole operator, run it by [Start]:
//
//	synctest.Test(t, func(t *testing.T) {
//		cluster := gopftest.NewCluster(t, "kopf.dev/v1/kopfexamples", "v1/pods")
//		gopftest.Start(t, newOperator(), cluster)
//		cluster.Create(t, object)
//		synctest.Wait()       // all reactions are complete
//		time.Sleep(time.Hour) // timers and retries run in virtual time
//	})
//
// The same test can run on a real control plane; see [AnyCluster]. Programs other than tests
// can serve a cluster; see [NewStandalone].
//
// # What behaves like the real API
//
//   - discovery
//   - lists with selectors, pages and resource versions
//   - watches with resuming, bookmarks and streamed initial lists
//   - create, update, and all four types of patch
//   - the status and scale subresources
//   - metadata.generation, optimistic locking, finalizers, deletion timestamps
//   - namespaces and their deletion
//   - custom resource definitions, with pruning, defaulting and validation by schema
//   - RBAC, for requests that impersonate a user
//   - validating and mutating admission webhooks, with match conditions
//   - errors with the code, reason, message and details that clients rely on
//   - tables and partial metadata by the Accept header
//
// The conformance tests of this package run against this cluster and against a real
// control plane, and must agree.
//
// # What differs from the real API
//
//   - Only JSON is supported, no protobuf and no CBOR.
//   - There are no admission plugins.
//   - The only controllers are those that belong to the API itself: custom resource
//     definitions become established, deleted namespaces are emptied, and dependents of
//     deleted owners are collected. They act immediately, within the same write, and do
//     not call webhooks.
//   - Webhooks are not called for the scale subresource. Reinvocation policies are ignored.
//   - There are no predefined roles.
//   - Server-side apply does not support the scale subresource.
//   - Built-in kinds get hardly any defaults.
//   - Unknown fields are always pruned, whatever the fieldValidation of the request.
//   - Managed fields are tracked from an object's first apply on.
//
// # Faults
//
// [Cluster.Fault] makes selected requests fail, hang, or lose their response, and makes
// selected watches stall, repeat events, or break. It can also call the test back at a
// request, to stop an operator exactly there. [CrashAtEveryWrite] crashes the operator
// at each of its writes. [Cluster.Requests] returns all requests that were made.
package gopftest
