package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/pause"
	"gopf.dev/gopf/internal/tracing"
	"gopf.dev/gopf/storage"
)

// view is one version of an object plus everything derived from it: the cause, the
// finalizer state and the base.
type view struct {
	*Processor
	memory      *Memory
	body        *object.Body
	stored      stored
	blocked     bool     // the object has our finalizer, or a former name of it
	renamed     bool     // the object has a former name of our finalizer
	copied      bool     // the stored state belongs to another object
	foreign     []string // the ids of the records of that other object
	cause       *cause.Cause
	base        map[string]any   // the stored base, with secret values hidden; nil means none
	plain       bool             // the stored base contains plain values of a Secret
	asked       []execute.Part   // the changes that event handlers requested
	wrote       atomic.Bool      // a handler has written to the cluster directly
	fresh       bool             // the turn was started by an event
	pause       *pause.Pause     // the object is paused; nil means that it is not
	staying     delay            // the time until the next stage of stopping daemons
	ownsInOrder bool             // the deletion must wait for children
	tearing     bool             // the object is being deleted, and children are left
	handlerTime time.Duration    // the time spent in handlers
	wake        *Wake            // a request to call delayed handlers now; nil means none
	asking      *handler.Request // the argument of filters
	room        *callRoom        // for sub-handlers; nil means no limit
	log         *slog.Logger
	handlerLog  *slog.Logger // the logger of change handlers
}

// view loads the base and detects the cause.
func (p *Processor) view(ctx context.Context, m *Memory, body *object.Body) (*view, error) {
	return p.viewOf(ctx, m, body, len(p.Handlers) > 0 || p.Daemons != nil)
}

// viewOf is like view, but the caller decides whether the object is compared with its base. If
// not, its essence is not computed. Only change handlers and daemons need the comparison:
// reconcile handlers have no cause.
func (p *Processor) viewOf(ctx context.Context, m *Memory, body *object.Body, compared bool) (*view, error) {
	log := p.Logger(body)
	s := &view{Processor: p, memory: m, body: body, stored: stored{body}, log: tracing.Log(ctx, log), handlerLog: p.handlerLogger(body, log)}
	var now map[string]any
	if compared {
		now = p.essence(body)
		if p.Reconcile != nil && !body.Deleting {
			p.noteEssence(m, body, now)
		}
	}
	same := p.resumes(m) && p.unchanged(body) // as most objects at startup: their bases are not decoded
	old, known := now, true
	if same {
		s.base = now
	} else {
		var err error
		if old, known, err = s.loadBase(ctx, now); err != nil {
			return nil, err
		}
	}
	s.reportContested()
	s.pause = p.pauseOf(body)
	s.renamed = slices.ContainsFunc(p.Config.Former, func(f string) bool { return slices.Contains(body.Finalizers(), f) })
	s.blocked = s.renamed || slices.Contains(body.Finalizers(), p.Config.Finalizer)
	s.cause = &cause.Cause{Deleting: body.Deleting, Old: old, New: now}
	switch {
	case same, !compared:
	case known:
		s.cause.Diff = diff.Of(old, now)
	default:
		s.cause.Diff = diff.Of(nil, now)
	}
	s.cause.Reason, s.cause.Initial = cause.Detect(cause.Facts{
		Deleting: body.Deleting, Blocked: s.blocked,
		Known: known, Changed: len(s.cause.Diff) > 0,
		Initial: m.initial(),
	})
	return s, nil
}

// loadBase loads the base of an object with the essence now. A copy of another object has
// none.
func (v *view) loadBase(ctx context.Context, now map[string]any) (old map[string]any, known bool, err error) {
	old, known, err = v.Config.Base.Load(ctx, v.stored)
	if err = v.ignoreMalformed(err); err != nil {
		return nil, false, fmt.Errorf("load the last-handled configuration: %w", err)
	}
	if v.copied = v.isCopy(); v.copied || !known {
		return nil, false, nil
	}
	v.Config.Progress.Clean(old)
	essence.CleanBase(old)
	if v.secret() {
		v.plain = v.secrets(v.body).HidePlain(old)
	}
	v.base = old
	if v.secret() {
		old = v.secrets(v.body).Renew(old, secretValues(v.body))
	}
	return essence.Undigest(old, now), true, nil
}

// reportContested warns once per operator if another one keeps state of the object in
// annotations, although this one keeps it in the status.
func (v *view) reportContested() {
	state, ok := v.Config.Progress.(statusMover)
	if !ok || !state.InStatus() {
		return
	}
	if contested, ignored := state.State().Contested(v.stored); contested {
		v.Notices.contested(v.log, ignored)
	}
}

// essence returns the essence of a body: the fields whose changes are handled.
func (p *Processor) essence(body *object.Body) map[string]any {
	e := essence.Of(body, p.Fields)
	essence.Clean(stored{body}, e, p.Config.Base, p.Config.Progress)
	if p.secret() {
		p.secrets(body).Hide(e)
	}
	return e
}

// ignoreMalformed drops errors about malformed stored state and returns all others.
// Malformed state counts as absent: it must not block the object. The parts that could
// be read are used.
func (v *view) ignoreMalformed(err error) error {
	if _, malformed := errors.AsType[*storage.MalformedError](err); !malformed {
		return err
	}
	level := slog.LevelDebug // the state stays malformed until its handler is due
	if v.memory.facts.first(reportedMalformed) {
		level = slog.LevelWarn
	}
	v.log.Log(context.Background(), level, "Some of the state that is stored on the object cannot be read and is ignored.", "error", err)
	return nil
}

// request returns the argument of handlers and filters.
func (v *view) request() *handler.Request {
	return &handler.Request{
		Body: v.body, Resource: v.Resource, Cause: v.forHandlers(v.cause), Log: v.handlerLog, Memos: &v.memory.memos,
		Post: v.poster(v.body), PostFrom: v.PostFrom, API: v.Cluster,
		Patch: &patch.Patch{}, Wrote: func() { v.wrote.Store(true) },
	}
}
