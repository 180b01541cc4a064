// Command 07-subhandlers handles each item of an object in a separate sub-handler.
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
	items, _ := gopf.ValueAt[[]any](c, "spec.items")
	for _, item := range items {
		name, ok := item.(string)
		if !ok {
			continue
		}
		// The sub-handler runs after this handler, and is recorded as create_fn/<name>.
		c.Sub(name, func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
			c.Log.Info("Handling an item.", "item", name)
			return nil
		})
	}
	return nil
}
