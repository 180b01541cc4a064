package p

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
)

func provision(ctx context.Context, c *gopf.Change[*Database]) error { return nil }
func backup(ctx context.Context, c *gopf.Change[*Database]) error    { return nil }
func check(ctx context.Context, t *gopf.Tick[*Database]) error       { return nil }
func tail(ctx context.Context, d *gopf.Daemon[*Database]) error      { return nil }

func byNode(ctx context.Context, s *gopf.Subject[*corev1.Pod]) (map[string]string, error) {
	return nil, nil
}

func small(ctx context.Context, r *gopf.Review[*Database]) error { return nil }
func connect(ctx context.Context, a *gopf.Activity) error        { return nil }
