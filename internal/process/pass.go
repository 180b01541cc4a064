package process

import (
	"context"
	"errors"
	"slices"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// pass is one pass over the handlers of an object, whose outcomes must be saved.
type pass struct {
	*handling
	change    *change
	ids       []string // of the selected handlers
	leftovers []string // ids of records of other reasons
	key       func() string
	runner    *execute.Runner
	failure   error          // a framework error while handlers ran; may be nil
	stored    []execute.Part // changes of earlier turns that were stored in the note
	events    []execute.Part // the changes that event handlers requested
}

// save puts the outcomes into the change. It is called again if outcomes have
// changed because the API server refused the change of a handler.
func (p *pass) save(ctx context.Context) error {
	c := p.change
	note := p.note.Clone()
	for _, id := range p.runner.Finished() {
		note.Saw(id, p.cause.New, p.state.Record(id).Stopped)
	}
	for _, s := range p.runner.Spared() {
		// If the dependency is called again for a later state, so is this one.
		note.SawLike(s.ID, s.Dependency, p.cause.New, p.state.Record(s.ID).Stopped)
	}
	if !p.state.Done(p.ids) {
		// The write of this pass must not look like a change to the finished handlers.
		p.absorb(note, joint(p.parts()))
	}
	c.todo, p.saved = false, note
	if c.ran && !c.apart && (len(c.parts) > 0 || p.reason == cause.Delete) && p.maybeElsewhere() {
		err := p.saveTodo(ctx, note, todoOf(c.parts, p.body))
		if c.notes.Empty() {
			p.elsewhere.Store(true)
			return err
		}
		if err != nil {
			return err
		}
		if err := p.restart(ctx); err != nil { // the records are on the object
			return err
		}
	}
	err := p.saveOutcomes(ctx, note)
	if err != nil || c.apart || !c.ran || !p.recordsInStatus() {
		return err
	}
	// The status and the rest of the object need separate requests. The records are
	// sent first: otherwise a crash between the two would repeat finished handlers.
	todo := todoOf(c.parts, p.body)
	if !outsideOfStatus(todo) {
		todo = nil
	}
	notes, _ := c.notes.Split()
	switch {
	case len(todo)+len(notes) > 0:
	case p.reason != cause.Delete || c.due.Set:
		return nil
	case p.endsWithRelease():
		c.notes = patch.Patch{}
		return nil
	}
	if err = p.restart(ctx); err != nil {
		return err
	}
	if err = p.saveTodo(ctx, note, todo); !errors.Is(err, progress.ErrNoteTooLarge) {
		return err
	}
	if err = p.restart(ctx); err != nil {
		return err
	}
	return p.saveOutcomes(ctx, note)
}

// endsWithRelease reports whether the removal of the operator's finalizer is all that is left
// to do. Then that one write is also the record of the deletion. Records of earlier attempts
// go with the object, unless another finalizer keeps it. While children or daemons are left, the
// finalizer stays, so the outcomes must be recorded.
func (p *pass) endsWithRelease() bool {
	c := p.change
	if !p.blocked || p.tearing || p.staying.Set || c.interrupted || len(c.parts) > 0 || !p.state.Done(p.ids) {
		return false
	}
	return c.notes.Empty() || len(p.body.Finalizers()) == 1
}

// saveTodo puts the records into the change, and a note with the changes that
// handlers requested. These changes are sent later.
func (p *pass) saveTodo(ctx context.Context, note *progress.Note, todo []progress.Todo) error {
	unsent := note.Clone()
	unsent.Todo = todo
	if err := p.saveUnfinished(ctx, unsent); err != nil {
		return err
	}
	p.change.todo, p.change.due = len(todo) > 0, handler.Some(time.Duration(0))
	return nil
}

// restart discards the records that were put into the change so far.
func (p *pass) restart(ctx context.Context) error {
	c := p.change
	c.notes, c.due, c.written, c.todo = patch.Patch{}, delay{}, nil, false
	return p.removeForeign(ctx, c)
}

// parts returns the changes that handlers requested in this pass, without refused ones.
func (p *pass) parts() []execute.Part { return p.with(p.runner.Parts(p.Handlers)) }

// with adds the changes of earlier turns and of event handlers.
func (p *pass) with(parts []execute.Part) []execute.Part {
	return slices.Concat(p.stored, parts, p.events)
}

// saveOutcomes puts the outcomes into the change as if all of it were written in
// one request.
func (p *pass) saveOutcomes(ctx context.Context, note *progress.Note) error {
	c := p.change
	c.due = p.state.Delay(p.ids, time.Now())
	if p.failure != nil {
		c.due = handler.Some(max(c.due.Is, p.lostRecordsDelay(p.memory)))
	}
	now := time.Now()
	w := p.memory.pend()
	w.postponed, w.delays = p.state.Postponed(now), p.state.Delays(now)
	staying := p.reason == cause.Delete && p.staying.Set
	switch {
	case staying && len(p.ids) == 0:
		return nil // there are no outcomes to record
	case staying, !p.state.Done(p.ids):
		// An object whose deletion waits for daemons keeps its records until the end.
		return p.saveUnfinished(ctx, note)
	}
	c.written = func() { p.memory.handled = true }
	return p.saveEnd(ctx, c, note)
}

// saveUnfinished puts the records and the note into the change.
func (p *pass) saveUnfinished(ctx context.Context, note *progress.Note) error {
	note.Key, note.Started = p.key(), p.state.Started(p.reason)
	// A sub-handler may take part in both handlings; its record must stay.
	return p.saveProgress(ctx, p.change, note, without(p.leftovers, p.state.Recorded(p.reason)))
}

// recordsInStatus reports whether records are stored only in the status, and the
// status is a subresource in all versions.
func (p *Processor) recordsInStatus() bool {
	placed, ok := p.Config.Progress.(storage.Placed)
	return ok && placed.InStatus() && p.guardsStatus()
}

// guardsStatus reports whether clients need a permission for the status to write it.
func (p *Processor) guardsStatus() bool { return p.Resource.HasStatus() && !p.Config.OpenStatus }

// maybeElsewhere reports whether records may be stored outside of the object.
func (p *Processor) maybeElsewhere() bool {
	_, ok := p.Config.Progress.(storage.Placed)
	return !ok
}
