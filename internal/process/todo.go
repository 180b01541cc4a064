package process

import (
	"context"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// Some progress storages cannot save records and requested changes in one request.
// The changes are then stored in the note first, together with the records:
//
//   - Records in the status: the first request writes records and note, the second
//     one sends the changes outside of the status, and the third one sends the
//     status changes and clears the note.
//   - Records outside of the object: records and note are saved, then the changes
//     are sent, and then the handling ends.
//
// A process that finds changes in a note sends them first, because the process that
// stored them may have crashed.

// todoOf returns the changes of the parts as merge patches.
func todoOf(parts []execute.Part, body *object.Body) []progress.Todo {
	var todo []progress.Todo
	for _, p := range parts {
		if fields := p.Patch.Fold(body.Map); len(fields) > 0 {
			todo = append(todo, progress.Todo{Handler: p.Handler, Patch: fields})
		}
	}
	return todo
}

// outsideOfStatus reports whether some of the changes are outside of the status.
func outsideOfStatus(todo []progress.Todo) bool {
	return slices.ContainsFunc(todo, func(t progress.Todo) bool {
		_, status := t.Patch["status"]
		return len(t.Patch) > 1 || len(t.Patch) == 1 && !status
	})
}

// statusFields returns the part of a patch that changes the status.
func statusFields(p *patch.Patch, body *object.Body) map[string]any {
	var folded patch.Patch
	folded.Merge(p.Fold(body.Map))
	_, status := folded.Split()
	return status
}

// statusOnly returns the part reduced to its status changes.
func statusOnly(p execute.Part, body *object.Body) execute.Part {
	status := statusFields(&p.Patch, body)
	p.Patch = patch.Patch{}
	p.Patch.Merge(status)
	return p
}

// mainOnly returns the part reduced to its changes outside of the status. Edits run
// again on the newest state, with their status changes undone: statusOnly sends them.
func mainOnly(p execute.Part) execute.Part {
	whole := p.Patch
	p.Patch = patch.Patch{}
	main, _ := whole.Split()
	p.Patch.Merge(main)
	if edits := whole.Edits(); len(edits) > 0 {
		p.Patch.Edit(func(fields map[string]any) {
			status, had := fields["status"]
			status = jsonvalue.Clone(status)
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

// todo tracks how far the changes in the note have been sent.
type todo struct {
	main   []execute.Part // sent first
	status []execute.Part // sent next
	sent   bool           // main was sent
}

// newTodo divides the parts into those for the status and the others.
func (p *Processor) newTodo(parts []execute.Part, body *object.Body) *todo {
	t := &todo{}
	if !p.recordsInStatus() {
		t.main = slices.Clone(parts) // one request sends all of them
		return t
	}
	for _, part := range parts {
		if main := mainOnly(part); !main.Patch.Empty() {
			t.main = append(t.main, main)
		}
		if status := statusOnly(part, body); !status.Patch.Empty() {
			t.status = append(t.status, status)
		}
	}
	return t
}

// drop removes the status changes of the handlers.
func (t *todo) drop(ids ...string) {
	t.status = slices.DeleteFunc(t.status, func(p execute.Part) bool { return slices.Contains(ids, p.Handler) })
}

// ignoreForgedTodo removes the changes from the note if the operator cannot have stored
// them there. It never stores changes in annotations: only other clients can have put
// them there, and sending them would lend these clients the permissions of the operator.
func (h *handling) ignoreForgedTodo() {
	if len(h.note.Todo) == 0 || h.maybeElsewhere() || h.recordsInStatus() && !h.noteInAnnotations() || h.noteComesFromStatus() {
		return
	}
	h.note.Todo = nil
	ok, suppressed := h.limiter.Allow("todo")
	if !ok {
		return
	}
	var attrs []any
	if suppressed > 0 {
		attrs = append(attrs, "suppressed", suppressed)
	}
	h.log.Warn("The handling note has unsent changes, but this operator stores none there. They are ignored, because any client that may edit the object can have written them.", attrs...)
}

// maxUnrecorded limits the stored changes of handlers without a record. The operator stores
// changes together with records, except for those of event handlers. Other clients may
// have written thousands, and each that the API server refuses costs requests.
const maxUnrecorded = 64

// recorded returns the changes without those of handlers that have no record, if these are
// too many.
func (h *handling) recorded(all []progress.Todo) []progress.Todo {
	if len(all) <= maxUnrecorded {
		return all
	}
	ids := make([]string, len(all))
	for i, t := range all {
		ids[i] = t.Handler
	}
	records, err := h.Config.Progress.Load(context.Background(), h.stored, ids)
	if h.ignoreMalformed(err) != nil {
		return all // the changes may be our own
	}
	unrecorded := 0
	kept := slices.DeleteFunc(slices.Clone(all), func(t progress.Todo) bool {
		if _, ok := records[t.Handler]; ok {
			return false
		}
		unrecorded++
		return unrecorded > maxUnrecorded
	})
	if ignored := len(all) - len(kept); ignored > 0 {
		h.log.Warn("The handling note has too many unsent changes of handlers that have no record. The rest of them is ignored, because any client that may edit the object can have written them.", "ignored", ignored)
	}
	return kept
}

// noteInAnnotations reports whether a note is in an annotation, as it can be after a move
// of the records to the status.
func (h *handling) noteInAnnotations() bool {
	if state, ok := h.Config.Progress.(statusMover); ok {
		return state.FromAnnotations(h.stored)
	}
	for key := range h.body.Annotations() {
		if _, name, ok := strings.Cut(key, "/"); ok && strings.HasPrefix(name, progress.HandlingID) {
			return true
		}
	}
	return false
}

// noteComesFromStatus reports whether the note is in the status, although new state goes to
// annotations: a process that kept its state in the status has stored it, or a client that may write
// the status.
func (h *handling) noteComesFromStatus() bool {
	state, ok := h.Config.Progress.(statusMover)
	return ok && !state.InStatus() && h.guardsStatus() && !state.FromAnnotations(h.stored)
}

// sendTodo adds the changes in the note to c, unless this process has sent them. A nil
// result means that at most status changes are left; c has these in its parts.
func (h *handling) sendTodo(c *change) (conclude func(context.Context) error) {
	stored := h.note.Todo
	h.note.Todo = nil // the next write of the note removes them
	if len(stored) == 0 {
		return nil
	}
	w := h.memory.pend()
	if w.todo == nil {
		var parts []execute.Part
		for _, t := range h.recorded(stored) {
			part := execute.Part{Handler: t.Handler}
			part.Patch.Merge(t.Patch)
			parts = append(parts, part)
		}
		w.todo = h.newTodo(parts, h.body)
	}
	t := w.todo
	if t.sent || len(t.main) == 0 {
		c.parts, c.stored, w.todo = append(t.status, c.parts...), len(t.status), nil
		return nil
	}
	refused := false
	for i, part := range t.main {
		t.main[i].Refuse = func(err error) {
			refused = true
			t.drop(append(h.refuse(part.Handler, err), part.Handler)...)
		}
	}
	c.parts, c.acted = append(t.main, c.parts...), true
	return func(ctx context.Context) error {
		c.due = handler.Some(time.Duration(0))
		c.written = func() { t.sent = true }
		if !refused && !h.noteComesFromStatus() {
			return nil
		}
		note := h.note.Clone() // without the changes: in annotations they would count as forged
		for _, p := range t.status {
			note.Todo = append(note.Todo, progress.Todo{Handler: p.Handler, Patch: p.Patch.Fields()})
		}
		return h.saveProgress(ctx, c, note, nil)
	}
}

// refuse turns the recorded success of a handler into an error, because the API server
// refused the handler's change. It returns the parents of a sub-handler that become
// unfinished with it.
func (h *handling) refuse(id string, err error) (parents []string) {
	limits := handler.Limits{}
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
		if h.dropped++; h.dropped == 1 {
			h.Logger(h.body).Error("Dropped a change that the API server refused. Others that are dropped in this turn are not logged.", "handler", id, "error", err)
		}
		return nil
	}
	undo := func(r storage.Record) storage.Record {
		return storage.Record{Started: r.Started, Purpose: r.Purpose, Retries: max(0, r.Retries-1), Subrefs: r.Subrefs}
	}
	before := undo(h.state.Record(id))
	outcome := execute.Attempt{
		Title: "Handler", ID: id, Limits: limits, Retries: before.Retries, Started: before.Started,
		DefaultBackoff: h.Config.DefaultBackoff, DefaultMode: handler.Retry, Log: h.handlerLog,
	}.Refused(err)
	now := time.Now()
	h.state.Restore(id, before)
	h.state.Attempted(id, progress.Attempt{Final: outcome.Final, Failed: outcome.Err != nil, Message: outcome.Message, Delay: outcome.Delay}, now)
	if outcome.Final {
		return nil
	}
	for parent, r := range h.state.Records() { // its parents become unfinished
		if slices.Contains(r.Subrefs, id) && r.Finished() {
			h.state.Restore(parent, undo(r))
			h.state.Attempted(parent, progress.Attempt{Failed: true, Message: outcome.Message, Delay: outcome.Delay}, now)
			parents = append(parents, parent)
		}
	}
	return parents
}

// finishTodo sends the changes in the note of an object that no handler matches now.
func (v *view) finishTodo(ctx context.Context, c *change) (conclude func(context.Context) error, err error) {
	if w := v.memory.busy; w == nil || w.todo == nil {
		return nil, nil
	}
	h, err := v.open(ctx)
	if err != nil {
		return nil, err
	}
	if conclude := h.sendTodo(c); conclude != nil {
		return conclude, nil
	}
	return func(ctx context.Context) error { return h.saveProgress(ctx, c, h.note, nil) }, nil
}
