// Command 15-timers calls functions periodically for each object.
package main

import (
	"context"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

func main() {
	op := gopf.New()
	objects := op.Resource("kopfexamples")
	objects.Timer("every_few_seconds_sync", 2*time.Second, ping("Ping from a timer."), gopf.Idle(5*time.Second))
	objects.Timer("every_few_seconds_async", 4*time.Second, ping("Ping from another timer."), gopf.Idle(10*time.Second))
	cli.Main(op)
}

func ping(message string) func(context.Context, *gopf.Tick[gopf.Unstructured]) error {
	return func(_ context.Context, t *gopf.Tick[gopf.Unstructured]) error {
		field, _ := gopf.ValueAt[string](t, "spec.field")
		t.Log.Info(message, "field", field)
		return nil
	}
}
