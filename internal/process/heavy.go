package process

import (
	"context"
	"fmt"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/turnstile"
)

// heavyObject is the [object.Body.WriteSize] from which a write to an object is in flight alone.
// The API server processes such a write for up to a second, and the events of other objects of
// the kind wait for it in its watch cache.
const heavyObject = 256 << 10

// heavyPart is the size from which writes count. Smaller ones never wait.
const heavyPart = 64 << 10

// HeavyWrites limits the size of the large objects of a namespace to which writes are in flight:
// one of [heavyObject], or several smaller ones. Otherwise a tenant with many large objects could
// delay the events of all others. nil means that there is no limit.
type HeavyWrites struct{ gate turnstile.Gate }

// Enter waits until a write to the object may be sent. The caller must call leave after it.
func (h *HeavyWrites) Enter(ctx context.Context, body *object.Body, p *patch.Patch) (leave func(), err error) {
	return h.enter(ctx, body.Namespace, writeSize(body, p))
}

func (h *HeavyWrites) enter(ctx context.Context, namespace string, size int) (leave func(), err error) {
	if !h.limits(size) {
		return func() {}, nil
	}
	if leave, err = h.gate.EnterAs(ctx, namespace, size/heavyPart, heavyObject/heavyPart); err != nil {
		return nil, fmt.Errorf("wait for other writes to large objects of the namespace: %w", err)
	}
	return leave, nil
}

// limits reports whether a write of the size can wait for others.
func (h *HeavyWrites) limits(size int) bool { return h != nil && size >= heavyPart }

// writeSize estimates the size of the object after the write. It errs on the high side: patches may
// replace values, and decoded values take more memory than their JSON.
func writeSize(body *object.Body, patches ...*patch.Patch) int {
	size := body.WriteSize()
	for _, p := range patches {
		size += jsonvalue.Weight(p.Fields())
	}
	return size
}
