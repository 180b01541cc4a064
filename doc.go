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
// Which objects a handler is for is said on the left, by narrowing a handle
// ([Resource.WithLabel], [Resource.When]); what has happened to them by the verb
// ([Resource.OnCreate], [Resource.OnUpdate]); how it is run on the right, by
// options ([Retries], [Backoff]).
//
// The progress of handlers is kept on the objects themselves, in the format of
// Kopf, the framework for Python that this one takes its model from. So an
// operator continues where it was after a restart, and one written in Go can
// take over from one written in Python, and back.
package gopf
