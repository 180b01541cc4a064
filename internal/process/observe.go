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
func (p *Processor) Index(ctx context.Context, m *Memory, event *Event) (forget bool) {
	defer m.note(event.Mark)
	p.recovering(event.Body, func() { p.index(ctx, m, event) })
	return event.Gone()
}

// index keeps what the object has in indices up to date. Old news do not count.
func (p *Processor) index(ctx context.Context, m *Memory, event *Event) {
	switch {
	case p.Indexers == nil:
	case event.Gone():
		p.Indexers.Remove(event.Body.Key())
	case m.outdated(event.Body) && !m.rewound(event):
	default:
		p.Indexers.Update(ctx, func() *registry.Request { return p.plainRequest(m, event.Body) })
		if p.onlyObserves() {
			m.version = event.Body.ResourceVersion // nobody else notes it
		}
	}
}

// plainRequest is for handlers that are about the object as it is.
func (p *Processor) plainRequest(m *Memory, body *object.Body) *registry.Request {
	return &registry.Request{
		Body: body, Resource: p.Resource, Log: p.Logger(body), Memos: &m.memos, Patch: &patch.Patch{},
		Post: p.poster(body), PostFrom: p.PostFrom, API: p.Cluster,
		Key: func() string { return body.UID },
	}
}

// daemonRequest is for daemons and timers, whose lines may become events.
func (p *Processor) daemonRequest(m *Memory, body *object.Body) *registry.Request {
	r := p.plainRequest(m, body)
	r.Log = p.handlerLogger(body)
	return r
}

// accompany spawns and stops daemons and timers as the object demands. It
// returns the time until more is done about those that are to stop.
func (v *view) updateDaemons(isEvent bool) delay {
	if v.Daemons == nil {
		return delay{}
	}
	p, m := v.Processor, v.memory
	kept, due := p.Daemons.Sight(m.daemons, daemon.Sighting{
		Request:   p.daemonRequest(m, v.body),
		Changed:   isEvent && len(v.cause.Diff) > 0,
		Unguarded: !v.blocked,
		Again:     func(b *object.Body) *registry.Request { return p.daemonRequest(m, b) },
	})
	m.daemons = kept
	return due
}

// accompanyOnly does nothing about a new state except to spawn and stop daemons and
// timers.
func (p *Processor) updateDaemonsOnly(ctx context.Context, m *Memory, state *object.Body) {
	if p.Daemons == nil {
		return
	}
	if s, err := p.view(ctx, m, state); err == nil {
		s.updateDaemons(true)
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
func (p *Processor) observe(ctx context.Context, m *Memory, event *Event, asked *[]execute.Part) {
	if len(p.Watchers) == 0 {
		return
	}
	log := p.Logger(event.Body)
	var matched uint64
	var called registry.Set
	for i, h := range p.Watchers {
		if called.Has(h.ID) {
			continue
		}
		bit := uint64(1) << min(i, 63) // the rest shares the last one
		request := &registry.Request{
			Body: event.Body, Resource: p.Resource, Event: event.Type, Missed: event.Missed, Log: log, Memos: &m.memos,
			Post: p.poster(event.Body), PostFrom: p.PostFrom, API: p.Cluster,
			Handler: h, Started: time.Now(), Patch: &patch.Patch{},
		}
		p.recovering(event.Body, func() {
			if event.Missed && m.watched&bit == 0 || !event.Missed && !h.MatchesEvent(request) {
				return
			}
			matched |= bit
			called = append(called, h)
			p.callWatcher(ctx, log, h, request, asked)
		})
	}
	m.watched = matched
}

// tell calls one event handler.
func (p *Processor) callWatcher(ctx context.Context, log *slog.Logger, h *registry.Handler, request *registry.Request, asked *[]execute.Part) {
	var outcome execute.Outcome
	p.aside(func() { outcome = p.attempt(ctx, log, h, request) })
	part := execute.Part{Handler: h.ID}
	part.Patch.Absorb(request.Patch)
	if outcome.Err == nil && outcome.Result != nil {
		execute.Deliver(&part.Patch, h.ID, outcome.Result)
	}
	if !part.Patch.Empty() {
		*asked = append(*asked, part)
	}
}

func (p *Processor) attempt(ctx context.Context, log *slog.Logger, h *registry.Handler, request *registry.Request) execute.Outcome {
	return execute.Attempt{
		Title: "Handler", ID: h.ID, Started: request.Started,
		DefaultBackoff: p.Config.DefaultBackoff, DefaultMode: registry.Ignore, Log: log, Observe: p.Observe, Enter: p.Entrance.For(h, nil),
		Quiet: func(any) bool { return true },
		Call: func(ctx context.Context) (any, error) {
			if err := h.Call(ctx, request); err != nil {
				return nil, err
			}
			return execute.ToJSON(request.Result)
		},
	}.Make(ctx)
}
