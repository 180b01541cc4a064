// Command 14-daemons runs background functions for objects, for as long as the objects
// exist.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

func main() {
	op := gopf.New()
	objects := op.Resource("kopfexamples")
	objects.Daemon("background_sync", accompanyForAWhile, gopf.Backoff(3*time.Second))
	objects.WithAnnotation("someannotation", gopf.Is("somevalue")).
		Daemon("background_async", accompany, gopf.Backoff(3*time.Second), gopf.StopGrace(time.Second), gopf.StopTimeout(500*time.Millisecond))
	cli.Main(op)
}

// accompanyForAWhile fails three times, and then runs for 30 seconds, unless its
// object is deleted.
func accompanyForAWhile(ctx context.Context, d *gopf.Daemon[gopf.Unstructured]) error {
	if d.Retry < 3 {
		d.Patch.Set("status.message", fmt.Sprintf("Failed %d times.", d.Retry+1))
		return gopf.RetryAfter(time.Second, errors.New("a simulated failure"))
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		field, _ := gopf.ValueAt[string](d, "spec.field")
		d.Log.Info("=> Ping from a daemon.", "field", field, "retry", d.Retry)
		sleep(ctx, 5*time.Second)
	}
	d.Patch.Set("status.message", "Accompanying is finished.")
	return nil
}

// accompany also fails three times, and then runs until it is stopped. d.Stopping is
// closed one second before the context is canceled; 0.5 s later, the operator no longer
// waits for the daemon.
func accompany(_ context.Context, d *gopf.Daemon[gopf.Unstructured]) error {
	if d.Retry < 3 {
		return gopf.RetryAfter(time.Second, errors.New("a simulated failure"))
	}
	every := time.NewTicker(5 * time.Second)
	defer every.Stop()
	for {
		// d.Object is the object at the start of the daemon, d.Current() the latest one.
		now, _, _ := unstructured.NestedString(d.Current().Object, "spec", "field")
		d.Log.Info("=> Ping from another daemon.", "field", now, "generation", d.Current().GetGeneration())
		select {
		case <-d.Stopping():
			d.Log.Info("=> The other daemon stops.")
			return nil
		case <-every.C:
		}
	}
}

// sleep waits for d, or until the context is canceled.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
