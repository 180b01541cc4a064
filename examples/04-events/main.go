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
	c.Event("SomeType", "SomeReason", "Any type and reason will do")

	// These are the usual types.
	c.Event(gopf.Normal, "Started", "The work has started")
	c.Event(gopf.Warning, "Slow", "It takes longer than usual")
	c.Event(gopf.Failure, "Broken", "The work failed: %v", errors.New("out of memory"))
	return nil
}
