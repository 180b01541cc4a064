// Package gopf is a framework for Kubernetes operators. Declare plain functions as
// handlers for the objects of a resource, such as a custom resource (CRD), and run them.
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
// The manual is in the folder docs of the repository. This page is an overview of the
// package.
//
// # Declaring
//
// An [Operator] is a declaration. [New] creates one, [Operator.Err] reports its
// mistakes, [Operator.Run] runs it, and package cli adds a command line. Handles for
// resources come from [For], with a Go type, and [Operator.Resource], without one.
//
// Filters restrict a handle to some objects, like predicates in controller-runtime:
// [Resource.WithLabel], [Resource.WithAnnotation], [Resource.WithField],
// [Resource.Field], [Resource.When] and [Resource.Select]. A [Matcher] is a condition
// for a value. The methods of a handle declare handlers, and options tune them:
//
//   - [Resource.OnCreate], [Resource.OnUpdate], [Resource.OnDelete],
//     [Resource.OnResume] and [Resource.OnField] get a [Change] ([ChangeOption]).
//   - [Resource.OnEvent] gets a [WatchEvent].
//   - [Resource.Daemon] gets a [Daemon] ([DaemonOption]), and [Resource.Timer] a
//     [Tick] ([TimerOption]).
//   - [Resource.Validate] and [Resource.Mutate] are admission webhooks and get a
//     [Review] ([ReviewOption]).
//   - [Index], [Collect] and [Mirror] keep data about all objects in memory
//     ([RetryOption]).
//   - [Operator.OnStartup], [Operator.OnCleanup], [Operator.OnLogin] and
//     [Operator.OnProbe] get an [Activity] ([RetryOption]).
//
// The first argument is the id of the handler, which is stored on objects.
//
// # In handlers
//
// The arguments of all object handlers embed [Subject]: the object, a [Patch] that
// collects changes to it, a logger, and a [client.Client] for the cluster. [Memo] keeps
// values in memory with the object, and [ValueAt] reads fields that have no Go type.
//
// A handler that returns nil has succeeded. [RetryAfter], [Wait] and [Permanent] decide
// about retries; [MaxAttempts], [Timeout], [Backoff] and [ErrorsPermanent] limit them.
//
// # Running
//
// [Settings] has all settings, and [RunOption] the scope and the credentials of a run.
// [Operator.Pause] pauses a running operator. [Resource.Wake] and [WakeOwner] call
// delayed handlers early.
//
// # State
//
// The progress of handlers is stored on the objects themselves, in the format of Kopf,
// the Python framework on which this one is modeled. An operator therefore continues
// after a restart where it stopped. An operator written in Go can take over from one
// written in Python, and vice versa. Package storage has other places for the state.
//
// # Other packages
//
//	cli        the command line of operators
//	client     access to the cluster from handlers
//	diff       differences between two versions of an object
//	hierarchy  owner references, names and labels of children
//	kind       names of resources
//	logs       log formats
//	storage    storages for the state
//	webhook    servers for admission webhooks
//	gopftest   test tools, in a separate module
package gopf
