// Command 04-events posts Kubernetes events about an object. "kubectl describe" shows
// them.
package main

import (
	"context"
	"errors"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

func main() {
	op := gopf.New()
	op.Resource("kopfexamples").OnCreate("create_fn", create)
	cli.Main(op)
}

func create(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	c.Post("SomeType", "SomeReason", "Any type and reason will do")

	// The usual types have their own methods.
	c.Info("Started", "The work has started")
	c.Warn("Slow", "It takes longer than usual")
	c.Failure("Broken", errors.New("the work failed"))
	return nil
}
