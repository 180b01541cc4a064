package process

import (
	"context"
	"fmt"
	"sync"

	"gopf.dev/gopf/internal/object"
)

// heavyObject is the size of an object, in bytes, from which writes to it are heavy. The API
// server processes such a write for up to a second, and the events of other objects of the
// kind wait for it in its watch cache.
const heavyObject = 256 << 10

// HeavyWrites lets each namespace have one heavy write in flight. Otherwise a tenant with many
// large objects could delay the events of all others. nil means that there is no limit.
type HeavyWrites struct {
	mu    sync.Mutex
	lines map[string]*line // by namespace
}

// line has the heavy writes of a namespace that are in flight or wait.
type line struct {
	slot   chan struct{}
	writes int
}

// Enter waits until a write to the object may be sent. The caller must call leave after it.
func (h *HeavyWrites) Enter(ctx context.Context, body *object.Body) (leave func(), err error) {
	if !h.limits(body) {
		return func() {}, nil
	}
	return h.enter(ctx, body.Namespace)
}

func (h *HeavyWrites) enter(ctx context.Context, namespace string) (leave func(), err error) {
	l := h.join(namespace)
	select {
	case l.slot <- struct{}{}:
		return func() { <-l.slot; h.part(namespace, l) }, nil
	case <-ctx.Done():
		h.part(namespace, l)
		return nil, fmt.Errorf("wait for other writes to large objects of the namespace: %w", context.Cause(ctx))
	}
}

// limits reports whether a write to the object can wait for others.
func (h *HeavyWrites) limits(body *object.Body) bool { return h != nil && body.Size() >= heavyObject }

func (h *HeavyWrites) join(namespace string) *line {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lines == nil {
		h.lines = map[string]*line{}
	}
	l := h.lines[namespace]
	if l == nil {
		l = &line{slot: make(chan struct{}, 1)}
		h.lines[namespace] = l
	}
	l.writes++
	return l
}

func (h *HeavyWrites) part(namespace string, l *line) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.writes--; l.writes == 0 {
		delete(h.lines, namespace)
	}
}
