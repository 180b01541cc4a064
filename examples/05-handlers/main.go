// Command 05-handlers has handlers for everything that can happen to an object, and
// several handlers for the same reason.
package main

import (
	"context"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

func main() {
	op := gopf.New()
	objects := op.Resource("kopfexamples")
	objects.OnResume("resume_fn_1", say("RESUMED 1st"))
	objects.OnCreate("create_fn_1", say("CREATED 1st"))
	objects.OnResume("resume_fn_2", say("RESUMED 2nd"))
	objects.OnCreate("create_fn_2", say("CREATED 2nd"))
	objects.OnUpdate("update_fn", update)
	objects.OnDelete("delete_fn_1", say("DELETED 1st"))
	objects.OnDelete("delete_fn_2", say("DELETED 2nd"))
	objects.OnField("field_fn", "spec.field", fieldChanged)
	cli.Main(op)
}

// say returns a handler that logs a message.
func say(message string) gopf.ChangeFunc[gopf.Unstructured] {
	return func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		c.Log.Info(message)
		return nil
	}
}

func update(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	for _, item := range c.Diff {
		c.Log.Info("UPDATED", "op", item.Op, "path", item.Path, "old", item.Old, "new", item.New)
	}
	return nil
}

// fieldChanged is also called on creation, because the field appears.
func fieldChanged(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	before, _ := c.OldValue()
	after, _ := c.NewValue()
	c.Log.Info("FIELD CHANGED", "from", before, "to", after)
	return nil
}
