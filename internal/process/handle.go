package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/storage"
)

// handle runs the handlers that are due. It returns how to save what became of
// them.
func (s *sight) handle(ctx context.Context, c *change) (save func(context.Context) error, err error) {
	reason, title := s.cause.Reason, s.cause.Reason.Title()
	state, note, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	superseded, leftovers := state.Superseded(reason)
	for other, n := range superseded {
		s.log.Info(fmt.Sprintf("%s is superseded by %s: %d succeeded; %d failed; %d left to the moment.",
			other.Title(), strings.ToLower(title), n.Succeeded, n.Failed, n.Left))
	}
	selected := s.Handlers.Select(s.asking)
	ids := make([]string, len(selected))
	for i, h := range selected {
		ids[i] = h.ID
	}
	state.Select(ids, reason, time.Now())
	if s.memory.busy != nil && !s.fresh {
		state.PostponeAll(s.memory.busy.postponed)
	}
	handling := s.handling(state, ids, note)

	s.log.Debug(title+" is in progress:", "body", s.shown(s.body))
	if len(s.cause.Diff) > 0 && s.cause.Old != nil {
		s.log.Debug(title+" diff:", "diff", s.shownDiff())
	}
	key := sync.OnceValue(func() string { // few ask for it
		if handling.Key != "" {
			return handling.Key
		}
		return s.key()
	})
	runner := s.runner(state, c, key)
	var failure error
	if len(selected) > 0 {
		s.aside(func() { failure = runner.Pass(ctx, selected) })
	}
	c.ran = runner.Ran() > 0
	if failure != nil && !c.ran {
		return nil, failure
	}
	if n := state.Counts(reason); handling.Seen == nil && n.Succeeded+n.Failed > 0 {
		handling.Seen = s.cause.New
	}
	s.memory.work().postponed = state.Postponed(time.Now())
	done := state.Done(ids)
	c.due = state.Delay(ids, time.Now())
	c.interrupted = !done && ctx.Err() != nil
	if failure != nil { // what was done is saved all the same
		s.log.Error("The progress of sub-handlers cannot be read; trying again.", "error", failure)
		c.due = registry.Some(max(c.due.Is, s.forgotten(s.memory)))
	}
	unfinished := func(ctx context.Context) error {
		handling.Key = key()
		return s.saveProgress(ctx, c, state, ids, handling, without(leftovers, ids))
	}
	if !done {
		return unfinished, nil
	}
	if len(selected) > 0 && c.ran {
		n := state.Counts(reason)
		s.log.Info(fmt.Sprintf("%s is processed: %d succeeded; %d failed.", title, n.Succeeded, n.Failed))
	}
	if reason == cause.Delete && s.staying.Set {
		// The object stays for its daemons: it must be remembered that the
		// handlers are done until it goes.
		return unfinished, nil
	}
	return func(ctx context.Context) error { return s.saveDone(ctx, c, state, handling) }, nil
}

// load reads the progress of all handlers of the resource, and what is known of
// the handling as a whole.
func (s *sight) load(ctx context.Context) (*progress.State, storage.Record, error) {
	ids := append(s.Handlers.IDs(), progress.HandlingID)
	records, err := s.Config.Progress.Load(ctx, s.stored, ids)
	if err = s.excuse(err); err != nil {
		return nil, storage.Record{}, fmt.Errorf("load the progress: %w", err)
	}
	if s.copied {
		records = s.estrange(records)
	}
	note := records[progress.HandlingID]
	delete(records, progress.HandlingID)
	state := progress.New(records)
	for _, h := range s.Handlers {
		for _, former := range h.Formerly {
			state.Rename(former, h.ID)
		}
	}
	return state, note, nil
}

// handling continues the handling that the note is of, or begins a new one, which
// has no key yet.
func (s *sight) handling(state *progress.State, ids []string, note storage.Record) progress.Handling {
	if state.Stored(ids) {
		if h, found := progress.DecodeHandling(note, s.cause.Reason, state.Started(ids)); found {
			return h
		}
	}
	return progress.Handling{}
}

func (s *sight) runner(state *progress.State, c *change, key func() string) *execute.Runner {
	return &execute.Runner{
		Reason: s.cause.Reason, Lifecycle: s.Config.Lifecycle, DefaultBackoff: s.Config.DefaultBackoff,
		Log: s.handlerLogger(s.body), Observe: s.Observe, State: state, Patch: &c.asked, Urgent: s.wake.urgent,
		Request: func() *registry.Request {
			r := s.request()
			r.Key = key
			return r
		},
		Load: func(ctx context.Context, ids []string) (map[string]storage.Record, error) {
			records, err := s.Config.Progress.Load(ctx, s.stored, ids)
			return records, s.excuse(err)
		},
	}
}

// saveProgress puts into the patch how far the handlers have come.
func (s *sight) saveProgress(ctx context.Context, c *change, state *progress.State, ids []string, h progress.Handling, purge []string) error {
	changed := state.Changed()
	note, err := progress.EncodeHandling(h, s.cause.Reason, state.Started(ids))
	if err != nil {
		return err
	}
	changed[progress.HandlingID] = note
	if err := s.Config.Progress.Save(ctx, s.stored, &c.notes, changed, purge); err != nil {
		return fmt.Errorf("save the progress: %w", err)
	}
	return nil
}

// saveDone puts into the patch that the change is handled: nothing of the
// progress, but what the object was like. If it has changed since the first
// handler finished, it is what that one saw: the difference is handled next, as
// an update, so that no handler misses it.
func (s *sight) saveDone(ctx context.Context, c *change, state *progress.State, h progress.Handling) error {
	purge := append(s.Handlers.IDs(), state.IDs()...)
	purge = append(purge, progress.HandlingID)
	if err := s.Config.Progress.Save(ctx, s.stored, &c.notes, state.Changed(), purge); err != nil {
		return fmt.Errorf("save the progress: %w", err)
	}
	c.written = func() { s.memory.handled = true }
	base := s.cause.New
	if h.Seen != nil && !s.body.Deleting {
		base = h.Seen
	}
	return s.saveBase(ctx, c, base)
}

// takenBack notices that the object is as it was handled last, but that a change
// of it was being handled meanwhile. What handlers saw who have finished becomes
// what was handled last, so that the way back is a change for them, too; what is
// left of the others is of no use. It returns how to save that; nil for nothing.
func (s *sight) takenBack(ctx context.Context) (save func(context.Context, *change) error, err error) {
	state, note, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	ids := state.Recorded(cause.Update)
	if len(ids) == 0 {
		return s.removeStaleNote(state, note), nil
	}
	h, _ := progress.DecodeHandling(note, cause.Update, state.Started(ids))
	s.log.Info("A change was taken back while it was handled.")
	return func(ctx context.Context, c *change) error {
		purge := append(append(s.Handlers.IDs(), state.IDs()...), progress.HandlingID)
		if err := s.Config.Progress.Save(ctx, s.stored, &c.notes, nil, purge); err != nil {
			return fmt.Errorf("save the progress: %w", err)
		}
		if h.Seen == nil || diff.Equal(essence.Undigest(h.Seen, s.cause.New), s.cause.New) {
			return nil
		}
		return s.saveBase(ctx, c, h.Seen)
	}, nil
}

func (s *sight) saveBase(ctx context.Context, c *change, base map[string]any) error {
	if s.cause.Old != nil && diff.Equal(s.cause.Old, essence.Undigest(base, s.cause.Old)) {
		return nil
	}
	err := s.Config.Base.Save(ctx, s.stored, &c.notes, base)
	var large *storage.TooLargeError
	if errors.As(err, &large) {
		s.log.Error("The object is too large for remembering what it was like: its next change will be handled without a diff. Exclude fields that do not matter from the base, or keep it elsewhere.", "error", err)
		s.poster(s.body)("Warning", "TooLarge", "The object is too large for remembering what it was like: its next change will be handled without a diff.")
		if base, err = essence.Digest(base); err == nil {
			err = s.Config.Base.Save(ctx, s.stored, &c.notes, base)
		}
	}
	if err != nil {
		return fmt.Errorf("save the last-handled configuration: %w", err)
	}
	return nil
}

func without(ids, except []string) []string {
	return slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(except, id) })
}
