package process

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/storage"
)

// sight is one state of an object and what is to be thought of it.
type sight struct {
	*Kind
	memory  *Memory
	body    *object.Body
	stored  stored
	blocked bool // it has our finalizer
	cause   *cause.Cause
	log     *slog.Logger
}

// look reads what was stored about the object and finds out why it is to be
// handled.
func (k *Kind) look(ctx context.Context, m *Memory, body *object.Body) (*sight, error) {
	s := &sight{Kind: k, memory: m, body: body, stored: stored{body}, log: k.logger(body)}
	old, known, err := k.Config.Base.Load(ctx, s.stored)
	if err != nil {
		return nil, fmt.Errorf("load the last-handled configuration: %w", err)
	}
	if known {
		k.Config.Progress.Clean(old)
	} else {
		old = nil
	}
	now := essence.Build(body.Map(), k.fields())
	essence.Clean(s.stored, now, k.Config.Base, k.Config.Progress)

	s.blocked = slices.Contains(body.Finalizers(), k.Config.Finalizer)
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

func (k *Kind) fields() []fieldpath.Path {
	var paths []fieldpath.Path
	for _, p := range k.Handlers.Fields() {
		paths = append(paths, p)
	}
	return paths
}

// decide finds out what is due for the object, has it done, and returns what is
// to be written.
func (s *sight) decide(ctx context.Context) (*change, error) {
	request := s.request()
	interested := s.Handlers.Interested(request)
	mustBlock := interested && s.Handlers.Blocking(request)
	c := &change{patch: &patch.Patch{}, finalizer: apply.Finalizer{Name: s.Config.Finalizer}}
	switch {
	case mustBlock && !s.blocked && !s.body.Deleting:
		s.log.Debug("Adding the finalizer, thus preventing the actual deletion.")
		c.finalizer.Add = true
		return c, nil // it must be there before anything is done
	case !mustBlock && s.blocked:
		s.log.Debug("Removing the finalizer, as there are no handlers requiring it.")
		c.finalizer.Remove = true
		return c, nil
	case !interested:
		return c, nil
	}
	if s.cause.Reason.Handled() {
		if err := s.handle(ctx, c); err != nil {
			return nil, err
		}
	} else {
		s.shrug()
	}
	if s.body.Deleting && s.blocked && !c.due.Set && !c.interrupted {
		s.log.Debug("Removing the finalizer, thus allowing the actual deletion.")
		c.finalizer.Remove = true
	}
	if u, ok := s.Config.Progress.(storage.Untoucher); ok && !c.patch.Empty() {
		u.Untouch(s.stored, c.patch)
	}
	return c, nil
}

// shrug tells why nothing is done.
func (s *sight) shrug() {
	switch s.cause.Reason {
	case cause.Free:
		s.log.Debug("Deletion, but we are done with it, and we do not care.")
	case cause.Noop:
		s.log.Debug("Something has changed, but we are not interested (the essence is the same).")
	}
}

// handle runs the handlers that are due, and notes what became of them.
func (s *sight) handle(ctx context.Context, c *change) error {
	reason, title := s.cause.Reason, s.cause.Reason.Title()
	state, err := s.load(ctx)
	if err != nil {
		return err
	}
	superseded, leftovers := state.Superseded(reason)
	for other, n := range superseded {
		s.log.Info(fmt.Sprintf("%s is superseded by %s: %d succeeded; %d failed; %d left to the moment.",
			other.Title(), strings.ToLower(title), n.Succeeded, n.Failed, n.Left))
	}
	selected := s.Handlers.Select(s.request())
	ids := make([]string, len(selected))
	for i, h := range selected {
		ids[i] = h.ID
	}
	state.Select(ids, reason, time.Now())

	s.log.Debug(title+" is in progress:", "body", rawJSON(s.body))
	if len(s.cause.Diff) > 0 && s.cause.Old != nil {
		s.log.Debug(title+" diff:", "diff", s.cause.Diff.String())
	}
	runner := s.runner(state, c.patch)
	if err := runner.Pass(ctx, selected); err != nil {
		return err
	}
	done := state.Done(ids)
	c.due = state.Delay(ids, time.Now())
	c.interrupted = !done && ctx.Err() != nil
	if done && len(selected) > 0 {
		n := state.Counts(reason)
		s.log.Info(fmt.Sprintf("%s is processed: %d succeeded; %d failed.", title, n.Succeeded, n.Failed))
	}
	return s.save(ctx, c, state, done, without(leftovers, ids))
}

// load reads the progress of all handlers of the resource.
func (s *sight) load(ctx context.Context) (*progress.State, error) {
	records, err := s.Config.Progress.Load(ctx, s.stored, s.Handlers.IDs())
	if err != nil {
		return nil, fmt.Errorf("load the progress: %w", err)
	}
	state := progress.New(records)
	for _, h := range s.Handlers {
		for _, former := range h.Formerly {
			state.Rename(former, h.ID)
		}
	}
	return state, nil
}

// save puts into the patch how far the handlers have come; or, when they are
// done, nothing of it but what the object is like now.
func (s *sight) save(ctx context.Context, c *change, state *progress.State, done bool, purge []string) error {
	if done {
		purge = append(s.Handlers.IDs(), state.IDs()...)
	}
	if err := s.Config.Progress.Save(ctx, s.stored, c.patch, state.Changed(), purge); err != nil {
		return fmt.Errorf("save the progress: %w", err)
	}
	if !done {
		return nil
	}
	c.written = func() { s.memory.handled = true }
	if s.cause.Old != nil && diff.Equal(s.cause.Old, s.cause.New) {
		return nil
	}
	if err := s.Config.Base.Save(ctx, s.stored, c.patch, s.cause.New); err != nil {
		return fmt.Errorf("save the last-handled configuration: %w", err)
	}
	return nil
}

func (s *sight) runner(state *progress.State, p *patch.Patch) *execute.Runner {
	return &execute.Runner{
		Reason: s.cause.Reason, Lifecycle: s.Config.Lifecycle, DefaultBackoff: s.Config.DefaultBackoff,
		Log: s.log, State: state, Patch: p,
		Request: s.request,
		Load: func(ctx context.Context, ids []string) (map[string]storage.Record, error) {
			return s.Config.Progress.Load(ctx, s.stored, ids)
		},
	}
}

func (s *sight) request() *registry.Request {
	return &registry.Request{
		Body: s.body, Resource: s.Resource, Cause: s.cause, Log: s.log,
		Key:   s.body.UID,
		Patch: &patch.Patch{},
	}
}

func without(ids, except []string) []string {
	return slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(except, id) })
}
