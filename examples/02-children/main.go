// Command 02-children is an operator that creates a child for each object: a pod,
// which is deleted together with its owner.
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
	gopf.RegisterType[*corev1.Pod](op, "v1/pods", gopf.May("create")) // for 'gopf manifests'
	op.Resource("kopfexamples").OnCreate("create_fn", create)
	cli.Main(op)
}

func create(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
	// Fields of the object go into the pod. Both are optional.
	field, found := gopf.ValueAt[string](c, "spec.field")
	if !found {
		field = "default-value"
	}
	duration, found := gopf.ValueAt[string](c, "spec.duration")
	if !found {
		duration = "0"
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name:    "the-only-one",
			Image:   "busybox",
			Command: []string{"sh", "-x", "-c", `echo "FIELD=$FIELD"; sleep "$DURATION"`},
			Env:     []corev1.EnvVar{{Name: "FIELD", Value: field}, {Name: "DURATION", Value: duration}},
		}},
	}}

	// Because of the owner reference, Kubernetes deletes the pod together with the
	// object. Adopt also sets the pod's name, namespace and labels.
	if err := c.Adopt(pod); err != nil {
		return gopf.Permanent(err)
	}
	if err := c.API.Create(ctx, pod); err != nil {
		return fmt.Errorf("create the pod: %w", err) // retried after a minute
	}
	c.SetResult(map[string]any{"children": []string{string(pod.UID)}})
	return nil
}
