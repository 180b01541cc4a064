package process

import (
	"context"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/registry"
)

// Index does nothing about an event but to keep indices up to date. It returns
// whether the object is to be forgotten.
func (k *Kind) Index(ctx context.Context, m *Memory, event *Event) (forget bool) {
	defer m.note(event.Mark)
	k.guard(event.Body, func() { k.index(ctx, m, event) })
	return event.Gone()
}

// index keeps what the object has in indices up to date. Old news do not count.
func (k *Kind) index(ctx context.Context, m *Memory, event *Event) {
	switch {
	case k.Indexers == nil:
	case event.Gone():
		k.Indexers.Remove(event.Body.Key())
	case m.outdated(event.Body) && !m.rewound(event):
	default:
		k.Indexers.Update(ctx, func() *registry.Request { return k.plainRequest(m, event.Body) })
		if k.onlyLooks() {
			m.version = event.Body.ResourceVersion // nobody else notes it
		}
	}
}

// plainRequest is for handlers that are about the object as it is.
func (k *Kind) plainRequest(m *Memory, body *object.Body) *registry.Request {
	return &registry.Request{
		Body: body, Resource: k.Resource, Log: k.Logger(body), Memos: &m.memos, Patch: &patch.Patch{},
		Post: k.poster(body), PostFrom: k.PostFrom, API: k.Cluster,
		Key: func() string { return body.UID },
	}
}

// daemonRequest is for daemons and timers, whose lines may become events.
func (k *Kind) daemonRequest(m *Memory, body *object.Body) *registry.Request {
	r := k.plainRequest(m, body)
	r.Log = k.handlerLogger(body)
	return r
}

// accompany spawns and stops daemons and timers as the object demands. It
// returns the time until more is done about those that are to stop.
func (s *sight) accompany(isEvent bool) delay {
	if s.Daemons == nil {
		return delay{}
	}
	k, m := s.Kind, s.memory
	kept, due := k.Daemons.Sight(m.daemons, daemon.Sighting{
		Request:   k.daemonRequest(m, s.body),
		Changed:   isEvent && len(s.cause.Diff) > 0,
		Unguarded: !s.blocked,
		Again:     func(b *object.Body) *registry.Request { return k.daemonRequest(m, b) },
	})
	m.daemons = kept
	return due
}

// accompanyOnly does nothing about a new state except to spawn and stop daemons and
// timers.
func (k *Kind) accompanyOnly(ctx context.Context, m *Memory, state *object.Body) {
	if k.Daemons == nil {
		return
	}
	if s, err := k.look(ctx, m, state); err == nil {
		s.accompany(true)
	} else {
		m.daemons.See(state)
	}
}

// observe calls the event handlers that the event is for: each once, whatever
// comes of it. Of several with one id, only the first that matches is called. What
// they ask for is added to the patch.
//
// An object whose deletion was missed has nothing for filters to look at: it is
// told to those that it was for when it was seen last.
func (k *Kind) observe(ctx context.Context, m *Memory, event *Event, asked *[]execute.Part) {
	if len(k.Watchers) == 0 {
		return
	}
	log := k.Logger(event.Body)
	var matched uint64
	var called registry.Set
	for i, h := range k.Watchers {
		if called.Has(h.ID) {
			continue
		}
		bit := uint64(1) << min(i, 63) // the rest shares the last one
		request := &registry.Request{
			Body: event.Body, Resource: k.Resource, Event: event.Type, Missed: event.Missed, Log: log, Memos: &m.memos,
			Post: k.poster(event.Body), PostFrom: k.PostFrom, API: k.Cluster,
			Handler: h, Started: time.Now(), Patch: &patch.Patch{},
		}
		k.guard(event.Body, func() {
			if event.Missed && m.watched&bit == 0 || !event.Missed && !h.MatchesEvent(request) {
				return
			}
			matched |= bit
			called = append(called, h)
			k.tell(ctx, log, h, request, asked)
		})
	}
	m.watched = matched
}

// tell calls one event handler.
func (k *Kind) tell(ctx context.Context, log *slog.Logger, h *registry.Handler, request *registry.Request, asked *[]execute.Part) {
	var outcome execute.Outcome
	k.aside(func() { outcome = k.attempt(ctx, log, h, request) })
	part := execute.Part{Handler: h.ID}
	part.Patch.Absorb(request.Patch)
	if outcome.Err == nil && outcome.Result != nil {
		execute.Deliver(&part.Patch, h.ID, outcome.Result)
	}
	if !part.Patch.Empty() {
		*asked = append(*asked, part)
	}
}

func (k *Kind) attempt(ctx context.Context, log *slog.Logger, h *registry.Handler, request *registry.Request) execute.Outcome {
	return execute.Attempt{
		Title: "Handler", ID: h.ID, Started: request.Started,
		DefaultBackoff: k.Config.DefaultBackoff, DefaultMode: registry.Ignore, Log: log, Observe: k.Observe, Enter: k.Entrance.For(h, nil),
		Quiet: func(any) bool { return true },
		Call: func(ctx context.Context) (any, error) {
			if err := h.Call(ctx, request); err != nil {
				return nil, err
			}
			return execute.ToJSON(request.Result)
		},
	}.Make(ctx)
}
