package process

import (
	"context"
	"slices"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/storage"
)

// Where records are in the status, a change of the rest of the object is stored in
// the note with the records of its handlers, sent in the next request, and removed
// from the note with the one after that. A process that finds such a change in a
// note sends it first: the one before may have ended too early.

// todoOf is what the parts change outside of the status.
func todoOf(parts []execute.Part, body *object.Body) []progress.Todo {
	var todo []progress.Todo
	for _, p := range parts {
		if main := mainFields(&p.Patch, body); len(main) > 0 {
			todo = append(todo, progress.Todo{Handler: p.Handler, Patch: main})
		}
	}
	return todo
}

// mainFields is what a patch changes outside of the status.
func mainFields(p *patch.Patch, body *object.Body) map[string]any {
	main, _ := split(p, body)
	return main
}

func split(p *patch.Patch, body *object.Body) (main, status map[string]any) {
	var folded patch.Patch
	folded.Merge(p.Fold(body.Map()))
	return folded.Split()
}

// statusOnly is the part of a change for the status.
func statusOnly(p execute.Part, body *object.Body) execute.Part {
	_, status := split(&p.Patch, body)
	p.Patch = patch.Patch{}
	p.Patch.Merge(status)
	return p
}

// mainOnly is the part of a change for everything else. Edits are made again on the
// newest state, but what they do to the status was sent already.
func mainOnly(p execute.Part) execute.Part {
	whole := p.Patch
	p.Patch = patch.Patch{}
	main, _ := whole.Split()
	p.Patch.Merge(main)
	if edits := whole.Edits(); len(edits) > 0 {
		p.Patch.Edit(func(fields map[string]any) {
			status, had := fields["status"]
			status = fieldpath.Clone(status)
			for _, edit := range edits {
				edit(fields)
			}
			if fields["status"] = status; !had {
				delete(fields, "status")
			}
		})
	}
	return p
}

// sendTodo sends the changes that are stored in the note, if there are any. It
// returns nil if there are none.
func (h *handling) sendTodo(c *change) (conclude func(context.Context) error) {
	todo := h.note.Todo
	h.note.Todo = nil // the next write of the note removes them
	w := h.memory.busy
	if len(todo) == 0 || w != nil && w.todoSent {
		return nil
	}
	var parts []execute.Part
	if w != nil && len(w.todo) > 0 {
		parts = w.todo // with edits
	} else {
		for _, t := range todo {
			part := execute.Part{Handler: t.Handler}
			part.Patch.Merge(t.Patch)
			parts = append(parts, part)
		}
	}
	refused := false
	for i, part := range parts {
		parts[i].Refuse = func(err error) {
			refused = true
			h.refuse(part.Handler, err)
		}
	}
	c.parts, c.acted = append(parts, c.parts...), true
	return func(ctx context.Context) error {
		c.due = registry.Some(time.Duration(0))
		c.written = func() { h.memory.work().todoSent = true }
		if !refused {
			return nil
		}
		return h.saveProgress(ctx, c, h.note, nil)
	}
}

// refuse makes an error the outcome of a handler whose record says that it is done,
// because the API server refused what it had asked for.
func (h *handling) refuse(id string, err error) {
	limits := registry.Limits{}
	for _, handler := range h.Handlers {
		if handler.ID == id {
			limits = handler.Limits
		}
	}
	records, loadErr := h.Config.Progress.Load(context.Background(), h.stored, []string{id})
	if loadErr == nil {
		h.state.Add(records)
	}
	if !slices.Contains(h.state.IDs(), id) {
		h.Logger(h.body).Error("The API server refused a change, which is dropped.", "handler", id, "error", err)
		return
	}
	undo := func(r storage.Record) storage.Record {
		return storage.Record{Started: r.Started, Purpose: r.Purpose, Retries: max(0, r.Retries-1), Subrefs: r.Subrefs}
	}
	before := undo(h.state.Record(id))
	outcome := execute.Attempt{
		Title: "Handler", ID: id, Limits: limits, Retries: before.Retries, Started: before.Started,
		DefaultBackoff: h.Config.DefaultBackoff, DefaultMode: registry.Retry, Log: h.handlerLogger(h.body),
	}.Refused(err)
	now := time.Now()
	h.state.Restore(id, before)
	h.state.Attempted(id, progress.Attempt{Final: outcome.Final, Failed: outcome.Err != nil, Message: outcome.Message, Delay: outcome.Delay}, now)
	if outcome.Final {
		return
	}
	for parent, r := range h.state.Records() { // they are unfinished, too
		if slices.Contains(r.Subrefs, id) && r.Finished() {
			h.state.Restore(parent, undo(r))
			h.state.Attempted(parent, progress.Attempt{Failed: true, Message: outcome.Message, Delay: outcome.Delay}, now)
		}
	}
}

// leave does what is left to do for an object that no handler is interested in.
func (s *sight) leave(ctx context.Context, c *change) (conclude func(context.Context) error, err error) {
	if w := s.memory.busy; w == nil || !w.todoSent {
		return nil, nil
	}
	h, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	h.note.Todo = nil
	return func(ctx context.Context) error { return h.saveProgress(ctx, c, h.note, nil) }, nil
}
