package main

import (
	"context"
	"errors"

	"gopf.dev/gopf"
)

// newOperator returns a new operator, for main and for each test.
func newOperator() *gopf.Operator {
	op := gopf.New()
	op.Resource("kopfexamples").OnCreate("create_fn", create)
	return op
}

func create(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	duration, found := gopf.ValueAt[string](c, "spec.duration")
	if !found {
		return gopf.Permanent(errors.New("spec.duration is missing"))
	}
	c.Log.Info("Something was logged here.", "duration", duration)
	c.Patch.Set("status.message", "It will take "+duration+".")
	return nil
}
