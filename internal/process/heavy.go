package process

import (
	"context"
	"fmt"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/turnstile"
)

// heavyObject is the [object.Body.WriteSize] from which writes to an object are heavy. The API
// server processes such a write for up to a second, and the events of other objects of the
// kind wait for it in its watch cache.
const heavyObject = 256 << 10

// HeavyWrites lets each namespace have one heavy write in flight. Otherwise a tenant with many
// large objects could delay the events of all others. nil means that there is no limit.
type HeavyWrites struct{ gate turnstile.Gate }

// Enter waits until a write to the object may be sent. The caller must call leave after it.
func (h *HeavyWrites) Enter(ctx context.Context, body *object.Body) (leave func(), err error) {
	if !h.limits(body) {
		return func() {}, nil
	}
	return h.enter(ctx, body.Namespace)
}

func (h *HeavyWrites) enter(ctx context.Context, namespace string) (leave func(), err error) {
	if leave, err = h.gate.Enter(ctx, namespace, 1); err != nil {
		return nil, fmt.Errorf("wait for other writes to large objects of the namespace: %w", err)
	}
	return leave, nil
}

// limits reports whether a write to the object can wait for others.
func (h *HeavyWrites) limits(body *object.Body) bool {
	return h != nil && body.WriteSize() >= heavyObject
}
