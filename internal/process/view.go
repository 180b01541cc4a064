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
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/storage"
)

// sight is one state of an object and what is to be thought of it.
type view struct {
	*Processor
	memory      *Memory
	body        *object.Body
	stored      stored
	blocked     bool     // it has our finalizer
	copied      bool     // the stored state is another object's
	foreign     []string // the records that came with it
	cause       *cause.Cause
	base        map[string]any    // as it was stored, with secret values hidden; nil if there is none
	plain       bool              // the stored base has plain values of a Secret
	asked       []execute.Part    // what event handlers asked for
	wrote       atomic.Bool       // a handler has written to the cluster by itself
	fresh       bool              // the stream says that the object has changed
	staying     delay             // the time until more is done about daemons that the deletion waits for
	handlerTime time.Duration     // that handlers took
	wake        *Wake             // who asked not to wait for what is delayed; nil for nobody
	asking      *registry.Request // what filters are given
	log         *slog.Logger
}

// look reads what was stored about the object and finds out why it is to be
// handled.
func (p *Processor) view(ctx context.Context, m *Memory, body *object.Body) (*view, error) {
	s := &view{Processor: p, memory: m, body: body, stored: stored{body}, log: p.Logger(body)}
	old, known, err := p.Config.Base.Load(ctx, s.stored)
	if err = s.ignoreMalformed(err); err != nil {
		return nil, fmt.Errorf("load the last-handled configuration: %w", err)
	}
	if s.copied = s.isCopy(); s.copied {
		known = false
	}
	now := p.essence(body)
	if known {
		p.Config.Progress.Clean(old)
		if p.secret() {
			s.plain = p.secrets(body).HidePlain(old)
		}
		s.base = old
		if p.secret() {
			old = p.secrets(body).Renew(old, secretValues(body))
		}
		old = essence.Undigest(old, now)
	} else {
		old = nil
	}
	s.blocked = slices.Contains(body.Finalizers(), p.Config.Finalizer)
	s.cause = &cause.Cause{Deleting: body.Deleting, Old: old, New: now}
	if known {
		s.cause.Diff = diff.Of(old, now)
	} else {
		s.cause.Diff = diff.Of(nil, now)
	}
	s.cause.Reason, s.cause.Initial = cause.Detect(cause.Facts{
		Deleting: body.Deleting, Blocked: s.blocked,
		Known: known, Changed: len(s.cause.Diff) > 0,
		Initial: m.listed && !m.handled,
	})
	return s, nil
}

// essence is the essence of a state of an object.
func (p *Processor) essence(body *object.Body) map[string]any {
	e := essence.Of(body, p.Fields)
	essence.Clean(stored{body}, e, p.Config.Base, p.Config.Progress)
	if p.secret() {
		p.secrets(body).Hide(e)
	}
	return e
}

// excuse drops the error about stored state that is malformed: this state counts
// as absent and must not hold up the object. What could be read still counts.
func (v *view) ignoreMalformed(err error) error {
	var malformed *storage.MalformedError
	if !errors.As(err, &malformed) {
		return err
	}
	level := slog.LevelWarn
	if v.memory.malformed.Swap(true) {
		level = slog.LevelDebug // the damage may stay until its handler is due
	}
	v.log.Log(context.Background(), level, "Some of the state that is stored on the object cannot be read, and counts as absent.", "error", err)
	return nil
}

// request is what handlers and filters are given about the object.
func (v *view) request() *registry.Request {
	return &registry.Request{
		Body: v.body, Resource: v.Resource, Cause: v.forHandlers(v.cause), Log: v.handlerLogger(v.body), Memos: &v.memory.memos,
		Post: v.poster(v.body), PostFrom: v.PostFrom, API: v.Cluster,
		Patch: &patch.Patch{}, Wrote: func() { v.wrote.Store(true) },
	}
}
