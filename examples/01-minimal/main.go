// Command 01-minimal is the smallest operator: one function, called once for
// every new object.
package main

import (
	"context"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

func main() {
	op := gopf.New()
	op.Resource("kopfexamples").OnCreate("create_fn", create)
	cli.Main(op)
}

func create(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
	c.Log.Info("And here we are!", "spec", c.Object.Object["spec"])
	c.SetResult(map[string]string{"message": "hello world"}) // stored in the status
	return nil
}
