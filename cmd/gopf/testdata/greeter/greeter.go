// Package greeter has handlers, but no main function. They tell on stdout that they
// were called.
package greeter

import (
	"context"
	"fmt"

	"gopf.dev/gopf"
)

// Register adds the handlers.
func Register(op *gopf.Operator) {
	op.OnStartup("greet", func(context.Context, *gopf.Activity) error {
		fmt.Println(`{"said": "the greeter starts"}`)
		return nil
	})
	op.Resource("fruits").OnCreate("greet", func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		fmt.Printf(`{"said": "hello, %s"}`+"\n", c.Object.GetName())
		return nil
	})
}
