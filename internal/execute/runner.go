package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/storage"
)

// Runner runs the handlers of one object for one cause.
type Runner struct {
	Reason         cause.Reason
	Lifecycle      Lifecycle
	DefaultBackoff time.Duration
	Log            *slog.Logger

	State *progress.State // of all handlers; updated
	Patch *patch.Patch    // what handlers ask for is added here

	// Load reads the records of sub-handlers, which are known only when they
	// are declared.
	Load func(ctx context.Context, ids []string) (map[string]storage.Record, error)
	// Request makes the request for one call, with all but what is the call's own.
	Request func() *registry.Request

	failure error
}

// Pass runs once those of the handlers, which must be selected in the state,
// that are due and chosen by the lifecycle. An error means that the framework
// failed, not a handler.
func (r *Runner) Pass(ctx context.Context, handlers registry.Set) error {
	byID, ids := map[string]*registry.Handler{}, make([]string, 0, len(handlers))
	for _, h := range handlers {
		byID[h.ID] = h
		ids = append(ids, h.ID)
	}
	var due []Candidate
	for _, id := range r.State.Due(ids, time.Now()) {
		record := r.State.Record(id)
		due = append(due, Candidate{id, record.Retries, record.Started})
	}
	for _, chosen := range r.Lifecycle(due) {
		if ctx.Err() != nil {
			break
		}
		if h := byID[chosen.ID]; h != nil {
			r.call(ctx, h)
		}
	}
	return r.failure
}

// call makes one attempt of one handler and notes how it ended.
func (r *Runner) call(ctx context.Context, h *registry.Handler) {
	record := r.State.Record(h.ID)
	subs := &subs{runner: r}
	req := r.Request()
	req.Handler, req.Retry, req.Started = h, record.Retries, record.Started
	req.Key = req.Key + "/" + h.ID
	req.Patch = &patch.Patch{}
	req.RunSubs = subs.run

	outcome := Attempt{
		Title: "Handler", ID: h.ID, Limits: h.Limits,
		Retries: record.Retries, Started: record.Started,
		DefaultBackoff: r.DefaultBackoff, DefaultMode: registry.Retry,
		Log: r.Log,
		Call: func(ctx context.Context) (any, error) {
			err := h.Call(ctx, req)
			if unfinished := subs.unfinished(); unfinished != nil {
				return nil, unfinished
			}
			if err != nil {
				return nil, err
			}
			return ToJSON(req.Result)
		},
	}.Make(ctx)

	r.Patch.Absorb(req.Patch)
	now := time.Now()
	if outcome.Void || r.failure != nil {
		r.State.Postpone(h.ID, now.Add(outcome.Delay.Or(0)))
		return
	}
	r.State.Attempted(h.ID, progress.Attempt{
		Final: outcome.Final, Failed: outcome.Err != nil, Message: outcome.Message,
		Delay: outcome.Delay, Subs: subs.refs(),
	}, now)
	if outcome.Err == nil && outcome.Result != nil {
		Deliver(r.Patch, h.ID, outcome.Result)
	}
}

// Deliver puts a handler's result into the status. The fields of an object are
// merged with those that other calls have put there.
func Deliver(p *patch.Patch, id string, result any) {
	if fields, ok := result.(map[string]any); ok {
		for key, v := range fields {
			p.Set(v, "status", id, key)
		}
		if len(fields) > 0 {
			return
		}
	}
	p.Set(result, "status", id)
}

// ToJSON makes what JSON decodes to of a user's value.
func ToJSON(v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, &registry.Permanent{Err: fmt.Errorf("the result cannot be stored as JSON: %w", err)}
	}
	var decoded any
	err = json.Unmarshal(raw, &decoded)
	return decoded, err
}

// subs are the sub-handlers that one call has run.
type subs struct {
	runner *Runner
	ids    []string
}

func (s *subs) run(ctx context.Context, handlers []*registry.Handler) error {
	r, ids := s.runner, registry.Set(handlers).IDs()
	records, err := r.Load(ctx, ids)
	if err != nil {
		r.failure = fmt.Errorf("load the progress of sub-handlers: %w", err)
		return r.failure
	}
	own := make([]string, 0, len(handlers))
	r.State.Add(records)
	for _, h := range handlers {
		for _, former := range h.Formerly {
			r.State.Rename(former, h.ID)
		}
		own = append(own, h.ID)
	}
	r.State.Select(own, r.Reason, time.Now())
	s.ids = append(s.ids, own...)
	if err := r.Pass(ctx, handlers); err != nil {
		return err
	}
	return s.unfinished()
}

// unfinished tells that some of the sub-handlers must be called again; nil if
// none.
func (s *subs) unfinished() error {
	delay := s.runner.State.Delay(s.ids, time.Now())
	if !delay.Set {
		return nil
	}
	return &registry.Unfinished{Delay: delay.Is}
}

// refs are the ids of the sub-handlers on all levels.
func (s *subs) refs() []string {
	return append(s.runner.State.Subs(s.ids), s.ids...)
}
