// Command 04-events posts Kubernetes events about an object, which kubectl shows
// when the object is described.
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

	// The usual types have methods of their own.
	c.Info("Started", "The work has begun")
	c.Warn("Slow", "It takes longer than usual")
	c.Failure("Broken", errors.New("it did not work out"))
	return nil
}
