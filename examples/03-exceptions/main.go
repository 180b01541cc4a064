// Command 03-exceptions shows how handler errors are treated: permanent errors,
// delayed retries, retry limits and panics.
package main

import (
	"context"
	"errors"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

func main() {
	op := gopf.New()
	objects := op.Resource("kopfexamples")
	objects.OnCreate("instant_failure_with_only_a_message", failForGood)
	objects.OnCreate("eventual_success_with_a_few_messages", succeedAtLast)
	objects.OnCreate("eventual_failure_with_tracebacks", fail, gopf.MaxAttempts(3), gopf.Backoff(time.Second))
	objects.OnCreate("instant_failure_with_traceback", crash, gopf.ErrorsPermanent())
	cli.Main(op)
}

// failForGood is not called again, because its error is permanent.
func failForGood(context.Context, *gopf.Change[gopf.Unstructured]) error {
	return gopf.Permanent(errors.New("the order cannot be fulfilled"))
}

// succeedAtLast chooses the delay of its retries.
func succeedAtLast(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	if c.Retry < 3 {
		return gopf.RetryAfter(time.Second, errors.New("the shop is still closed"))
	}
	return nil
}

// fail returns a plain error: the handler's options define the number of attempts and
// the delay between them.
func fail(context.Context, *gopf.Change[gopf.Unstructured]) error {
	return errors.New("the shop does not respond")
}

// crash panics. A panic counts as an error and is logged with its stack trace.
func crash(context.Context, *gopf.Change[gopf.Unstructured]) error {
	var orders map[string]int
	orders["apples"]++ //nolint:staticcheck // the panic is intended
	return nil
}
