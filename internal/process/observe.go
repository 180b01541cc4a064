package process

import (
	"context"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/registry"
)

// observe calls the event handlers that the event is for: each once, whatever
// comes of it. What they ask for is added to the patch.
//
// An object whose deletion was missed has nothing for filters to look at: it is
// told to those that it was for when it was seen last.
func (k *Kind) observe(ctx context.Context, m *Memory, event *Event, asked *patch.Patch) {
	if len(k.Watchers) == 0 {
		return
	}
	log := k.logger(event.Body)
	var matched uint64
	for i, h := range k.Watchers {
		bit := uint64(1) << min(i, 63) // the rest shares the last one
		request := &registry.Request{
			Body: event.Body, Resource: k.Resource, Event: event.Type, Missed: event.Missed, Log: log,
			Handler: h, Started: time.Now(), Patch: &patch.Patch{},
		}
		if event.Missed && m.watched&bit == 0 || !event.Missed && !h.MatchesObject(request) {
			continue
		}
		matched |= bit
		k.tell(ctx, log, h, request, asked)
	}
	m.watched = matched
}

// tell calls one event handler.
func (k *Kind) tell(ctx context.Context, log *slog.Logger, h *registry.Handler, request *registry.Request, asked *patch.Patch) {
	outcome := execute.Attempt{
		Title: "Handler", ID: h.ID, Started: request.Started,
		DefaultBackoff: k.Config.DefaultBackoff, DefaultMode: registry.Ignore, Log: log,
		Call: func(ctx context.Context) (any, error) {
			if err := h.Call(ctx, request); err != nil {
				return nil, err
			}
			return execute.ToJSON(request.Result)
		},
	}.Make(ctx)
	asked.Absorb(request.Patch)
	if outcome.Err == nil && outcome.Result != nil {
		execute.Deliver(asked, h.ID, outcome.Result)
	}
}
