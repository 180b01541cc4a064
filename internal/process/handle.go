package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/tracing"
	"gopf.dev/gopf/storage"
)

// run calls the handlers that are due. It returns a function that puts their outcomes
// into the change.
func (h *handling) run(ctx context.Context, c *change) (conclude func(context.Context) error, err error) {
	title := h.reason.Title()
	h.note.Continue(h.reason)
	superseded, leftovers := h.state.Superseded(h.reason)
	for other, n := range superseded {
		h.log.Info(fmt.Sprintf("%s is superseded by %s: %d succeeded; %d failed; %d left to the moment.",
			other.Title(), strings.ToLower(title), n.Succeeded, n.Failed, n.Left))
	}
	selected, ids := h.choose(time.Now())
	h.log.Debug(title+" is in progress:", "body", h.shown(h.body))
	if len(h.cause.Diff) > 0 && h.cause.Old != nil {
		h.log.Debug(title+" diff:", "diff", h.shownDiff())
	}
	key := sync.OnceValue(func() string { // computed on demand: few handlers use it
		if h.note.Key != "" {
			return h.note.Key
		}
		return h.key()
	})
	runner := h.runner(ctx, key)
	h.forgetMisfits()
	var failure error
	if len(selected) > 0 {
		began := time.Now()
		h.aside(h.body, func() { failure = runner.Pass(ctx, selected) })
		h.handlerTime += time.Since(began)
	}
	c.ran = runner.Ran() > 0
	if failure != nil && !c.ran {
		return nil, failure
	}
	if failure != nil { // the outcomes so far must be saved
		h.log.Error("Failed to load the progress of sub-handlers; retrying.", "error", failure)
	}
	c.handling = h
	if h.state.Done(ids) && c.ran {
		n := h.state.Counts(h.reason)
		h.log.Info(fmt.Sprintf("%s is processed: %d succeeded; %d failed.", title, n.Succeeded, n.Failed))
	}
	parts := runner.Parts(h.Handlers)
	pass := &pass{handling: h, change: c, ids: ids, leftovers: leftovers, key: key, runner: runner, failure: failure,
		stored: c.parts[:c.stored:c.stored], events: c.parts[c.stored:]}
	if h.tryEdits(parts) {
		parts = runner.Parts(h.Handlers)
	}
	c.parts, c.current = pass.with(parts), pass.parts
	interrupted := func() bool { return !h.state.Done(ids) && ctx.Err() != nil }
	return func(ctx context.Context) error {
		c.interrupted = interrupted()
		return pass.save(ctx)
	}, nil
}

// tryEdits runs the edits of handlers on the current state. A panic of an edit becomes
// the error of its handler. It reports whether there was one: then the parts of the
// runner have changed.
func (h *handling) tryEdits(parts []execute.Part) (refused bool) {
	for _, part := range parts {
		if len(part.Patch.Edits()) == 0 {
			continue
		}
		func() {
			defer func() {
				if v := recover(); v != nil {
					part.Refuse(&execute.PanicError{Value: v, Stack: execute.PanicStack()})
					refused = true
				}
			}()
			part.Patch.Fold(h.body.Map)
		}()
	}
	return refused
}

// runner returns a runner for one pass over the handlers. ctx has the trace of the turn. key
// returns the key of the handling.
func (h *handling) runner(ctx context.Context, key func() string) *execute.Runner {
	return &execute.Runner{
		Reason: h.reason, Lifecycle: h.Config.Lifecycle, DefaultBackoff: h.Config.DefaultBackoff,
		Log: tracing.Log(ctx, h.handlerLog), Observe: h.observing(h.body), Entrance: h.Entrance, State: h.state, Urgent: h.wake.urgent, Known: h.knownMisfit,
		Cause: func(id string, parent *cause.Cause) *cause.Cause {
			if c := h.causeOf(id, parent); c != parent {
				return h.forHandlers(c)
			}
			return parent // forHandlers was applied to it before
		},
		Request: func() *handler.Request {
			r := h.request()
			r.Key = key
			if h.room != nil {
				r.Reserve, r.Hold = h.room.reserve, h.room.hold
			}
			return r
		},
		Load: func(ctx context.Context, ids []string) (map[string]storage.Record, error) {
			if h.copied {
				return nil, nil // the records belong to another object
			}
			records, err := h.Config.Progress.Load(ctx, h.stored, ids)
			return records, h.ignoreMalformed(err)
		},
	}
}

// knownMisfit reports whether the error of the handler was logged before for this state of
// the object. The state is the essence: a controller that writes the status every few
// seconds would otherwise repeat the error as often.
func (h *handling) knownMisfit(id string, err *handler.UndecodableError) bool {
	w := h.memory.pend()
	state := misfit{h.reason, progress.BaseID(h.cause.New), err.Error()}
	if w.misfits[id] == state {
		return true
	}
	if w.misfits == nil {
		w.misfits = map[string]misfit{}
	}
	w.misfits[id] = state
	return false
}

// forgetMisfits forgets the misfits of other states of the object.
func (h *handling) forgetMisfits() {
	if w := h.memory.busy; w != nil && len(w.misfits) > 0 {
		now := progress.BaseID(h.cause.New)
		maps.DeleteFunc(w.misfits, func(_ string, m misfit) bool { return m.essence != now })
	}
}

// saveProgress puts the changed records into c, the note unless it is nil, and the
// removal of the records named in purge.
func (h *handling) saveProgress(ctx context.Context, c *change, note *progress.Note, purge []string) error {
	changed := h.state.Changed()
	if note != nil && !(h.noted && note.Equal(h.loaded)) {
		record, err := note.Encode()
		if err != nil {
			return err
		}
		changed[progress.HandlingID] = record
	}
	if err := h.Config.Progress.Save(ctx, h.stored, &c.notes, changed, purge); err != nil {
		return fmt.Errorf("save the progress: %w", err)
	}
	return nil
}

// takeBack ends the handling of an update that was reverted. Handlers that have finished
// saw the reverted change, so they get another update.
func (h *handling) takeBack(ctx context.Context, c *change) error {
	return h.saveEnd(ctx, c, h.note)
}

// saveEnd ends the handling: it removes the records and saves the base. If some
// handlers did not see the final essence, the note stays, and the object is due at
// once for the update that follows. An object that is being deleted gets no base:
// there may be no space for it.
func (h *handling) saveEnd(ctx context.Context, c *change, note *progress.Note) error {
	end, saved := h.end(note), h.base
	if !h.body.Deleting { // a deletion must not depend on being able to save
		var err error
		if saved, err = h.saveBase(ctx, c, end.Base); err != nil {
			return err
		}
	}
	purge := h.Handlers.IDs()
	purge = append(purge, without(h.state.IDs(), purge)...)
	if end.Note == nil || end.Note.Empty() {
		purge, end.Note = append(purge, progress.HandlingID), nil
	} else {
		end.Note.Base, end.Note.Started = progress.BaseID(saved), time.Now()
	}
	if h.body.Deleting && h.elsewhere.Load() {
		// The finalizer is removed before the records. In the opposite order, a crash
		// between the two would repeat the handling of the deletion.
		c.written = func() {
			if err := h.saveProgress(ctx, &change{}, nil, purge); err != nil {
				h.log.Warn("Failed to remove the progress of a deleted object from its storage.", "error", err)
			}
		}
		return nil
	}
	if err := h.saveProgress(ctx, c, end.Note, purge); err != nil {
		return err
	}
	if !diff.Equal(end.Base, h.cause.New) {
		c.due = handler.Some(time.Duration(0))
	}
	return nil
}

// saveBase puts the base into c, unless the same base is stored. It returns the stored
// base, which is a digest if the base is too large.
func (h *handling) saveBase(ctx context.Context, c *change, base map[string]any) (saved map[string]any, err error) {
	if h.base != nil && !h.plain && diff.Equal(h.cause.Old, essence.Undigest(base, h.cause.Old)) {
		return h.base, nil
	}
	if h.plain {
		h.Notices.replacesPlain(h.log)
	}
	err = h.Config.Base.Save(ctx, h.stored, &c.notes, base)
	if _, large := errors.AsType[*storage.TooLargeError](err); large {
		h.log.Error("The object is too large to store its last-handled configuration: its next change will be handled without a diff. Exclude irrelevant fields from the base, or store the base outside of the object.", "error", err)
		h.poster(h.body)("Warning", "TooLarge", "The object is too large to store its last-handled configuration: its next change will be handled without a diff.")
		if base, err = essence.Digest(base); err == nil {
			err = h.Config.Base.Save(ctx, h.stored, &c.notes, base)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("save the last-handled configuration: %w", err)
	}
	return base, nil
}

// without returns the ids that are not in except.
func without(ids, except []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(except, id) })
}
