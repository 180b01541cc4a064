// Command 06-peering shows peering: run it twice, and one operator works while the
// other one pauses.
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

func create(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	c.Log.Info("Handled by this operator.")
	return nil
}
