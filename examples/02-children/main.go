// Command 02-children is an operator whose objects have children: a pod for each,
// which is deleted with its owner.
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

func main() {
	op := gopf.New()
	op.Resource("kopfexamples").OnCreate("create_fn", create)
	cli.Main(op)
}

func create(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
	duration, _ := gopf.Field[string](c, "spec.duration")
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name:    "main",
			Image:   "busybox",
			Command: []string{"sleep", duration},
		}},
	}}

	// The owner reference makes the pod be deleted with the object; name, namespace
	// and labels come from the object, too.
	if err := c.Adopt(pod); err != nil {
		return gopf.Permanent(err)
	}
	if err := c.API.Create(ctx, pod); err != nil {
		return fmt.Errorf("create the pod: %w", err) // tried again after a minute
	}
	c.SetResult(map[string]any{"children": []string{string(pod.UID)}})
	return nil
}
