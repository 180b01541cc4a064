package engine

import (
	"context"

	"gopf.dev/gopf/internal/registry"
)

// limitCalls makes calls of handlers of changes and events wait while so many
// of them are running; 0 is no limit. Sub-handlers run within the calls of
// their parents.
func limitCalls(handlers registry.Set, most int) {
	if most <= 0 {
		return
	}
	slots := make(chan struct{}, most)
	for _, h := range handlers {
		if h.Family != registry.Changes && h.Family != registry.Events {
			continue
		}
		call := h.Call
		h.Call = func(ctx context.Context, r *registry.Request) error {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			defer func() { <-slots }()
			return call(ctx, r)
		}
	}
}
