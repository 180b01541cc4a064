// Command 08-events logs the raw events of the watch stream.
package main

import (
	"context"
	"errors"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

func main() {
	op := gopf.New()
	objects := op.Resource("kopfexamples")
	objects.OnEvent("event_fn_with_error", failing)
	objects.OnEvent("normal_event_fn", normal)
	cli.Main(op)
}

// failing is called once for each event: its errors are logged and not retried.
func failing(context.Context, *gopf.WatchEvent[gopf.Unstructured]) error {
	return errors.New("oops")
}

func normal(_ context.Context, e *gopf.WatchEvent[gopf.Unstructured]) error {
	e.Log.Info("An event was received.", "type", e.Type, "version", e.Object.GetResourceVersion())
	return nil
}
