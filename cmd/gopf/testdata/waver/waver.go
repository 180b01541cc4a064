// Package waver has a handler, and Register in a variable.
package waver

import (
	"context"
	"fmt"

	"gopf.dev/gopf"
)

// Register adds the handler.
var Register = func(op *gopf.Operator) {
	op.OnCleanup("wave", func(context.Context, *gopf.Activity) error {
		fmt.Println(`{"said": "the waver waves"}`)
		return nil
	})
}
