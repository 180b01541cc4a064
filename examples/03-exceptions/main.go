// Command 03-exceptions shows what becomes of the errors of handlers.
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
	objects.OnCreate("eventual_failure_with_tracebacks", fail, gopf.Retries(3), gopf.Backoff(time.Second))
	objects.OnCreate("instant_failure_with_traceback", crash, gopf.OnError(gopf.Fail))
	cli.Main(op)
}

// failForGood is not called again: trying would not help.
func failForGood(context.Context, *gopf.Change[gopf.Unstructured]) error {
	return gopf.Permanent(errors.New("the order cannot be fulfilled"))
}

// succeedAtLast says itself when to try again.
func succeedAtLast(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	if c.Retry < 3 {
		return gopf.RetryAfter(time.Second, errors.New("the shop is still closed"))
	}
	return nil
}

// fail leaves it to the options of the handler how often, and how soon, it is tried.
func fail(context.Context, *gopf.Change[gopf.Unstructured]) error {
	return errors.New("the shop does not answer")
}

// crash panics, which is an error like any other, with a stack trace.
func crash(context.Context, *gopf.Change[gopf.Unstructured]) error {
	var orders map[string]int
	orders["apples"]++ //nolint:staticcheck // that is the point
	return nil
}
