package process

import (
	"context"
	"errors"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/storage"
)

// pass is one pass over the handlers of an object, whose outcomes are to be saved.
type pass struct {
	*handling
	change    *change
	ids       []string // of the selected handlers
	leftovers []string // ids of records of other reasons
	key       func() string
	runner    *execute.Runner
	failure   error          // of the framework, while handlers ran
	events    []execute.Part // what event handlers asked for
}

// save puts the outcomes into the change. It is called again if outcomes have
// changed, because the API server refused what a handler asked for.
func (p *pass) save(ctx context.Context) error {
	c := p.change
	note := p.note.Clone()
	for _, id := range p.runner.Finished() {
		note.Saw(id, p.cause.New, p.state.Record(id).Stopped)
	}
	if !p.state.Done(p.ids) {
		// What this turn writes is no change for the handlers that finished.
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
	// The rest of the object needs a request of its own. The records come first, so
	// that no finished handler is called again after a crash between the two.
	todo := todoOf(c.parts, p.body)
	if !outsideOfStatus(todo) {
		todo = nil
	}
	notes, _ := c.notes.Split()
	if len(todo)+len(notes) == 0 && (p.reason != cause.Delete || c.due.Set) {
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

// saveTodo puts into the change the records, and a note with the changes that
// handlers asked for. The changes themselves are sent later.
func (p *pass) saveTodo(ctx context.Context, note *progress.Note, todo []progress.Todo) error {
	unsent := note.Clone()
	unsent.Todo = todo
	if err := p.saveUnfinished(ctx, unsent); err != nil {
		return err
	}
	p.change.todo, p.change.due = len(todo) > 0, registry.Some(time.Duration(0))
	return nil
}

// restart forgets what was decided so far.
func (p *pass) restart(ctx context.Context) error {
	c := p.change
	c.notes, c.due, c.written, c.todo = patch.Patch{}, delay{}, nil, false
	return p.removeForeign(ctx, c)
}

// parts are the changes that handlers ask for in this turn, apart from refused ones.
func (p *pass) parts() []execute.Part { return append(p.runner.Parts(p.Handlers), p.events...) }

// saveOutcomes puts the outcomes into the change as if all of it were written in
// one request.
func (p *pass) saveOutcomes(ctx context.Context, note *progress.Note) error {
	c := p.change
	c.due = p.state.Delay(p.ids, time.Now())
	if p.failure != nil {
		c.due = registry.Some(max(c.due.Is, p.lostRecordsDelay(p.memory)))
	}
	now := time.Now()
	w := p.memory.pend()
	w.postponed, w.delays = p.state.Postponed(now), p.state.Delays(now)
	staying := p.reason == cause.Delete && p.staying.Set
	switch {
	case staying && len(p.ids) == 0:
		return nil // there is nothing to remember
	case staying, !p.state.Done(p.ids):
		// An object that stays for its daemons keeps the records of its handlers
		// until it goes.
		return p.saveUnfinished(ctx, note)
	}
	c.written = func() { p.memory.handled = true }
	return p.saveEnd(ctx, c, note)
}

// saveUnfinished puts the records and the note into the change.
func (p *pass) saveUnfinished(ctx context.Context, note *progress.Note) error {
	note.Key, note.Started = p.key(), p.state.Started(p.reason)
	// Sub-handlers may have taken part in both handlings.
	return p.saveProgress(ctx, p.change, note, without(p.leftovers, p.state.Recorded(p.reason)))
}

// recordsInStatus reports whether records are written to the status and nowhere
// else, by an endpoint of its own.
func (p *Processor) recordsInStatus() bool {
	placed, ok := p.Config.Progress.(storage.Placed)
	return ok && placed.InStatus() && p.Resource.HasStatus()
}

// maybeElsewhere reports whether records may be stored outside of the object.
func (p *Processor) maybeElsewhere() bool {
	_, ok := p.Config.Progress.(storage.Placed)
	return !ok
}
