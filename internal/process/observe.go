package process

import (
	"context"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/tracing"
)

// Index updates the indexes from an event and does nothing else. indexed is the version
// of the object in the indexes; "" means none. It returns the new one, and reports whether
// the object is gone and its memory must be dropped.
func (p *Processor) Index(ctx context.Context, m *Memory, event *Event, indexed string) (now string, forget bool) {
	defer m.note(event.Mark)
	if !p.onlyObserves() {
		// The version in the memory stands for states that were acted on: none was.
		acted := m.acted()
		m.setActed(versionOf(indexed))
		defer func() { m.setActed(acted) }()
	}
	p.recovering(event.Body, func() {
		if p.index(ctx, m, event) {
			indexed = event.Body.ResourceVersion
		}
	})
	return indexed, event.Gone()
}

// index updates the index entries of the object. It ignores stale events, and reports
// whether the entries are now those of the event.
func (p *Processor) index(ctx context.Context, m *Memory, event *Event) (done bool) {
	switch {
	case p.Indexers == nil:
	case event.Gone():
		p.Indexers.Remove(event.Body.Key())
	case m.outdated(event.Body) && !m.rewound(event):
	default:
		p.Indexers.Update(ctx, func() *handler.Request { return p.plainRequest(m, event.Body) })
		if m.facts.has(forgotten) { // its entries were removed before the index functions returned
			p.Indexers.Remove(event.Body.Key())
		}
		if p.onlyObserves() {
			m.setActed(versionOf(event.Body.ResourceVersion)) // otherwise, begin notes it
		}
		return true
	}
	return false
}

// plainRequest returns the request of handlers that see the current object and no
// change: indexers, daemons and timers.
func (p *Processor) plainRequest(m *Memory, body *object.Body) *handler.Request {
	return &handler.Request{
		Body: body, Resource: p.Resource, Log: p.Logger(body), Memos: &m.memos, Patch: &patch.Patch{},
		Post: p.poster(body), PostFrom: p.PostFrom, API: p.Cluster,
		Key: func() string { return body.UID }, Room: p.holding(body),
	}
}

// daemonRequest returns the request of daemons and timers. Their log lines may be
// posted as Kubernetes events.
func (p *Processor) daemonRequest(m *Memory, body *object.Body) *handler.Request {
	r := p.plainRequest(m, body)
	r.Log = p.handlerLogger(body, r.Log)
	return r
}

// updateDaemons starts and stops daemons and timers to match the object. It returns
// the time until the next stage of stopping daemons.
func (v *view) updateDaemons(isEvent bool) delay {
	p, m := v.Processor, v.memory
	if v.Daemons == nil || m.facts.has(forgotten) && m.daemons.Load() == nil {
		return delay{}
	}
	kept, due := p.Daemons.Sight(m.daemons.Load(), daemon.Sighting{
		Request:   p.daemonRequest(m, v.body),
		Key:       m.key(v.body),
		Changed:   isEvent && len(v.cause.Diff) > 0,
		Unguarded: !v.blocked,
		Paused:    v.pause != nil,
		Again:     func(b *object.Body) *handler.Request { return p.daemonRequest(m, b) },
	})
	m.daemons.Store(kept)
	if m.facts.has(forgotten) { // meanwhile: Forget may not have seen the new daemons
		kept.Forget(daemon.ErrUnmatched)
	}
	return due
}

// updateDaemonsOnly starts and stops daemons and timers for a new state, and does
// nothing else.
func (p *Processor) updateDaemonsOnly(ctx context.Context, m *Memory, state *object.Body) {
	if p.Daemons == nil {
		return
	}
	if s, err := p.view(ctx, m, state); err == nil {
		s.updateDaemons(true)
	} else {
		m.daemons.Load().See(state)
	}
}

// observe calls the event handlers that match the event, each once. Of several handlers
// with one id, it calls the first that matches. Errors are not retried. The changes that
// the handlers request are added to asked.
//
// If the deletion of an object was missed, its filters have no object to check. The
// event then goes to the handlers that matched the previous event.
func (p *Processor) observe(ctx context.Context, m *Memory, event *Event, asked *[]execute.Part) {
	if len(p.Watchers) == 0 {
		return
	}
	log := p.Logger(event.Body)
	var matched uint64
	var called handler.Set
	for i, h := range p.Watchers {
		if called.Has(h.ID) {
			continue
		}
		bit := uint64(1) << min(i, 63) // handlers beyond 63 share the last bit
		request := &handler.Request{
			Body: event.Body, Resource: p.Resource, Event: string(event.Type), Missed: event.Missed, Log: log, Memos: &m.memos,
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

// callWatcher calls one event handler.
func (p *Processor) callWatcher(ctx context.Context, log *slog.Logger, h *handler.Handler, request *handler.Request, asked *[]execute.Part) {
	var outcome execute.Outcome
	if room := p.roomFor(ctx, request.Body); room != nil {
		request.Hold = room.hold
		defer room.leave()
	}
	p.aside(request.Body, func() { outcome = p.attempt(ctx, log, h, request) })
	part := execute.Part{Handler: h.ID}
	part.Patch.Absorb(request.Patch)
	if outcome.Err == nil && outcome.Result != nil {
		execute.Deliver(&part.Patch, h.ID, outcome.Result)
	}
	if !part.Patch.Empty() {
		*asked = append(*asked, part)
	}
}

// attempt makes the only attempt of an event handler. Its errors are logged and ignored.
func (p *Processor) attempt(ctx context.Context, log *slog.Logger, h *handler.Handler, request *handler.Request) execute.Outcome {
	return execute.Attempt{
		Title: "Handler", ID: h.ID, Started: request.Started,
		DefaultBackoff: p.Config.DefaultBackoff, DefaultMode: handler.Ignore, Log: tracing.Log(ctx, log), Own: &request.Log, Observe: p.observing(request.Body), Enter: p.Entrance.For(h, nil),
		Quiet: func(any) bool { return true },
		Call: func(ctx context.Context) (any, error) {
			if err := h.Call(ctx, request); err != nil {
				return nil, err
			}
			return execute.ToJSON(request.Result)
		},
	}.Make(ctx)
}
