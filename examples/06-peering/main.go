// Command 06-peering is to be run twice: of several operators for the same objects
// one works, and the others pause.
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
	c.Log.Info("It was me who has handled this.")
	return nil
}
