package peering

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/kube"
)

// Alive returns the records of running operators in the peering objects with the name.
// Missing objects have none.
func Alive(ctx context.Context, client *kube.Client, name string, places []Place, now time.Time) (alive []Record, err error) {
	for _, place := range places {
		body, err := client.Get(ctx, target(place, name))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the peering %s %s: %w", name, place, err)
		}
		records, _ := Parse(status(body), now)
		for _, r := range records {
			if !r.Dead(now) {
				alive = append(alive, r)
			}
		}
	}
	return alive, nil
}

// Sweep removes the records of operators that have stopped without removing them. It
// returns their number.
func Sweep(ctx context.Context, client *kube.Client, name string, places []Place, now time.Time) (swept int, err error) {
	var failures []error
	for _, place := range places {
		body, err := client.Get(ctx, target(place, name))
		if err != nil {
			if !apierrors.IsNotFound(err) {
				failures = append(failures, fmt.Errorf("read the peering %s %s: %w", name, place, err))
			}
			continue
		}
		dead := map[string]any{}
		records, _ := Parse(status(body), now)
		for _, r := range records {
			if r.Dead(now) {
				dead[r.Identity] = nil
			}
		}
		if len(dead) == 0 {
			continue
		}
		if _, err := write(ctx, client, place, name, map[string]any{"status": dead}); err != nil {
			failures = append(failures, fmt.Errorf("tidy the peering %s %s: %w", name, place, err))
			continue
		}
		swept += len(dead)
	}
	return swept, errors.Join(failures...)
}
