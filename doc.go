// Package gopf is a framework for Kubernetes operators: declare plain functions
// for what happens to the objects of a resource, and run them.
//
//	func main() {
//		op := gopf.New()
//		op.Resource("kopfexamples").OnCreate("create_fn", create)
//		cli.Main(op)
//	}
//
//	func create(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
//		c.Log.Info("And here we are!")
//		c.SetResult(map[string]string{"message": "hello world"})
//		return nil
//	}
//
// # Declarations
//
// An [Operator] is a declaration. Handles for resources come from [For], with a Go
// type for the objects, or from [Operator.Resource], without one. Which objects a
// handler is for is said on the left, by narrowing a handle ([Resource.WithLabel],
// [Resource.When]); what has happened to them by the verb ([Resource.OnCreate],
// [Resource.OnUpdate]); how it is run on the right, by options ([Retries],
// [Backoff]). Every handler has an id, under which its progress is kept: it should
// not change. Mistakes are collected, and told by [Operator.Err] and [Operator.Run].
//
// # Handlers of changes
//
// They are called when an object is created, updated, deleted, or seen again after a
// restart, with what it was before, what it is now, and the difference: a [Change].
// A nil error means that the handler is done with this change; with any other it is
// called again, see [RetryAfter], [Wait] and [Permanent]. What is to be changed of
// the object is collected in a [Patch] and written together with the record of what
// was done. [Change.Sub] divides the work into parts with attempts of their own.
//
// The progress of handlers is kept on the objects themselves, in the format of
// Kopf, the framework for Python that this one takes its model from. So an
// operator continues where it was after a restart, and one written in Go can
// take over from one written in Python, and back.
//
// # Beside the objects
//
// [Resource.Daemon] runs a function for as long as an object exists, and
// [Resource.Timer] calls one again and again. [Resource.OnEvent] shows the raw events
// of the stream. [Index] keeps what handlers look up, [Memo] what they remember of an
// object; both are in memory. [Resource.Validate] and [Resource.Mutate] have a say
// in what users may do.
//
// # The cluster
//
// Handlers reach it by the [Client] that they are given, with the credentials of the
// operator. [Subject.Adopt] makes what they create belong to the object;
// [WakeOwner] makes them notice what becomes of it. [Subject.Info] and its like post
// Kubernetes events about the object.
//
// # The operator itself
//
// Package cli puts a command line around an operator; [Operator.Run] runs it inside of
// other programs. [Operator.OnStartup], [Operator.OnCleanup], [Operator.OnLogin] and
// [Operator.OnProbe] take part in its life, and [Settings] tune it. Package gopftest,
// which is a module of its own, has a cluster in memory for tests.
package gopf
