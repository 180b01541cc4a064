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
// The manual is in the folder docs of the repository. This is the map of the
// package.
//
// # Declaring
//
// An [Operator] is a declaration: [New] makes one, [Operator.Err] tells what is
// wrong with it, [Operator.Run] runs it, package cli puts a command line around
// it. From it come handles, [For] with a Go type and [Operator.Resource] without.
//
// Which objects a handler is for is said on the left, by narrowing a handle:
// [Resource.WithLabel], [Resource.WithAnnotation], [Resource.WithField],
// [Resource.Field], [Resource.When], [Resource.Select], with a [Matcher] for
// values. What has happened to them is the verb. How the handler is run is said
// on the right, by options.
//
//   - [Resource.OnCreate], [Resource.OnUpdate], [Resource.OnDelete],
//     [Resource.OnResume], [Resource.OnField] are called with a [Change], and take
//     options for changes ([ChangeOption]).
//   - [Resource.OnEvent] is called with an [Event].
//   - [Resource.Daemon] is called with a [Daemon] ([DaemonOption]),
//     [Resource.Timer] with a [Tick] ([TimerOption]).
//   - [Resource.Validate] and [Resource.Mutate] are called with a [Review]
//     ([ReviewOption]).
//   - [Index], [Collect] and [Mirror] keep something of all objects in memory
//     ([IndexOption]).
//   - [Operator.OnStartup], [Operator.OnCleanup], [Operator.OnLogin] and
//     [Operator.OnProbe] are called with an [Activity] ([ActivityOption]).
//
// The first argument of a verb is the handler's id, which is kept on objects.
//
// # In handlers
//
// All that is about an object embeds [Subject]: the object, a [Patch] for changes
// of it, a logger, and a [Client] for the rest of the cluster. [Memo] keeps values
// with objects, [Field] finds values without types.
//
// A nil error is success. [RetryAfter], [Wait] and [Permanent] say what else is to
// be done; [Retries], [Timeout], [Backoff] and [OnError] set limits.
//
// # Running
//
// [Settings] has all that can be tuned. [RunOption] says where the operator runs;
// [Operator.Freeze], [Resource.Wake] and [WakeOwner] move it while it does.
//
// # State
//
// The progress of handlers is kept on the objects themselves, in the format of
// Kopf, the framework for Python that this one takes its model from. So an
// operator continues where it was after a restart, and one written in Go can
// take over from one written in Python, and back. Package storage has other
// places to keep it.
//
// # Other packages
//
//	cli        the command line of operators
//	diff       what has changed, as handlers are told
//	hierarchy  children of objects
//	kind       names of resources
//	logs       formats of log lines
//	storage    where state is kept
//	webhook    servers for admission reviews
//	gopftest   tests, in a module of its own
package gopf
