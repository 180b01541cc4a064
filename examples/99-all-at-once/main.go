// Command 99-all-at-once combines the features of the other examples in one operator.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/hierarchy"
)

func main() {
	op := gopf.New()
	op.OnStartup("startup_fn_simple", startSimply)
	op.OnStartup("startup_fn_retried", startAtLast)
	op.OnCleanup("cleanup_fn", cleanUp)

	gopf.RegisterType[*corev1.Pod](op, "v1/pods", gopf.May("create")) // for 'gopf manifests'
	objects := op.Resource("kopfexamples")
	objects.OnCreate("create_1", create1)
	objects.OnCreate("create_2", create2)
	objects.OnCreate("create_pod", createPod)
	objects.OnUpdate("update", update)
	objects.OnField("update_lst", "spec.lst", update)
	objects.OnDelete("delete", deleted)

	gopf.For[*corev1.Pod](op, "v1/pods").
		WithLabel("application", gopf.Is("kopf-example-10")).
		OnEvent("example_pod_change", podChanged)
	cli.Main(op)
}

func startSimply(_ context.Context, a *gopf.Activity) error {
	a.Log.Info("Starting...")
	a.Settings.Execution.DefaultBackoff = time.Second
	return nil
}

func startAtLast(_ context.Context, a *gopf.Activity) error {
	if a.Retry < 3 {
		return gopf.RetryAfter(time.Second, errors.New("going to succeed soon"))
	}
	return nil
}

func cleanUp(_ context.Context, a *gopf.Activity) error {
	a.Log.Info("Cleaning up...")
	return nil
}

func create1(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	c.Event(gopf.Normal, "AnyReason", "The first part is done")
	c.Event(gopf.Warning, "SomeReason", "Something else is not")
	c.SetResult(map[string]int{"job1-status": 100})
	return nil
}

// create2 fails at the first attempt and succeeds at the second.
func create2(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	if c.Retry == 0 {
		return errors.New("whoops")
	}
	c.SetResult(map[string]int{"job2-status": 100})
	return nil
}

func createPod(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "the-only-one", Image: "busybox", Command: []string{"sleep", "1"}}},
	}}
	if err := errors.Join(
		c.Adopt(pod),
		hierarchy.Label(pod, map[string]string{"application": "kopf-example-10"}),
	); err != nil {
		return gopf.Permanent(err)
	}
	if err := c.API.Create(ctx, pod); err != nil {
		return fmt.Errorf("create the pod: %w", err)
	}
	c.API.Event(client.About(pod), client.Normal, "SomeReason", "Created as a part of something larger")
	return nil
}

func update(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	c.Log.Info("Handling the difference.", "diff", c.Diff.String())
	return nil
}

func deleted(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
	c.Log.Info("Handling the deletion.")
	return nil
}

func podChanged(_ context.Context, e *gopf.WatchEvent[*corev1.Pod]) error {
	e.Log.Info("This pod is special for us.")
	return nil
}
