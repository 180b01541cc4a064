package process

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// handling is the state of one handling in one pass: the records of the handlers, the
// note, and the cause as each handler sees it.
type handling struct {
	*view
	reason  cause.Reason
	state   *progress.State
	records map[string]storage.Record // the stored records, including those of sub-handlers
	note    *progress.Note
	noted   bool           // a note is stored, valid or not
	loaded  *progress.Note // the note as it is stored
	saved   *progress.Note // the note after the handlers ran; nil before

	causes  map[string]*cause.Cause // by the ids of the handlers that were selected for them
	dropped int                     // refused changes of handlers without a record

	undigester essence.Undigester // with the present essence
}

// open loads the records and the note.
func (v *view) open(ctx context.Context) (*handling, error) {
	if w := v.memory.busy; w != nil && w.refused != nil {
		return w.refused.reopen(v), nil
	}
	ids := append(v.Handlers.IDs(), progress.HandlingID)
	records, err := v.Config.Progress.Load(ctx, v.stored, ids)
	if err = v.ignoreMalformed(err); err != nil {
		return nil, fmt.Errorf("load the progress: %w", err)
	}
	if v.copied {
		v.ignoreRecords(records)
		records = nil
	}
	stored, noted := records[progress.HandlingID]
	delete(records, progress.HandlingID)
	h := &handling{view: v, reason: v.cause.Reason, state: progress.New(records), noted: noted}
	all, err := h.withSubs(ctx, records)
	if err != nil {
		return nil, err
	}
	h.records = all
	if h.note, err = progress.DecodeNote(stored, all); err != nil {
		_ = v.ignoreMalformed(err) // DecodeNote returns no other errors
	}
	if h.noted {
		h.note.Verify(progress.BaseID(v.base), all)
	}
	if v.secret() {
		h.note.Renew(func(e map[string]any) map[string]any {
			v.secrets(v.body).HidePlain(e)
			return v.secrets(v.body).Renew(e, secretValues(v.body))
		})
	}
	h.loaded = h.note.Clone()
	h.ignoreForgedTodo()
	if h.note.Key != "" && !ownKey(h.note.Key, v.body.UID) {
		h.note.Key = "" // another one is computed if a handler needs it
	}
	for _, handler := range v.Handlers {
		for _, former := range handler.Formerly {
			h.state.Rename(former, handler.ID)
			h.note.Rename(former, handler.ID)
		}
	}
	return h, nil
}

// withSubs returns the records, plus those of sub-handlers if a note is stored: only
// the note needs them.
func (h *handling) withSubs(ctx context.Context, records map[string]storage.Record) (map[string]storage.Record, error) {
	var ids []string
	for _, r := range records {
		ids = append(ids, r.Subrefs...)
	}
	if len(ids) == 0 || !h.noted {
		return records, nil
	}
	slices.Sort(ids)
	ids = slices.Compact(ids) // forged records may name a sub-handler thousands of times
	all, err := h.Config.Progress.Load(ctx, h.stored, ids)
	if err = h.ignoreMalformed(err); err != nil {
		return nil, fmt.Errorf("load the progress of sub-handlers: %w", err)
	}
	joined := make(map[string]storage.Record, len(all)+len(records))
	maps.Copy(joined, all)
	maps.Copy(joined, records)
	return joined, nil
}

// reopen continues the handling for a new state of the object, with the records and
// the note from memory: the API server refused to store them.
func (h *handling) reopen(s *view) *handling {
	note := h.note
	if h.saved != nil {
		note = h.saved
	}
	return &handling{view: s, reason: s.cause.Reason, state: h.state.Clone(), records: h.records, note: note.Clone(), noted: h.noted, loaded: h.loaded}
}

// slim returns the part of the handling that reopen needs, with digests of the essences
// that handlers saw.
func (h *handling) slim() *handling {
	note := h.note
	if h.saved != nil {
		note = h.saved
	}
	loaded := &progress.Note{Key: "not kept"} // equals no note, so the note is written again
	if h.loaded.Sightings() <= fewSightings {
		loaded = h.loaded.Digested()
	}
	return &handling{state: h.state, records: h.records, note: note.Digested(), noted: h.noted, loaded: loaded}
}

// fewSightings is the number of sightings up to which a slim handling keeps the stored note in
// addition to the present one. A forged note has thousands.
const fewSightings = 100

// stale reports whether the stored note is obsolete, because another operator has
// finished its handling.
func (h *handling) stale() bool {
	return h.noted && h.note.Empty() && len(h.state.IDs()) == 0
}

// missed reports whether a field handler, or one of its sub-handlers, finished with a value
// of its field that neither the object nor the base has. The field was then added and
// removed within one handling. The handler must see the removal, even if the object
// matches no handler without the field.
func (v *view) missed(ctx context.Context) bool {
	fields := slices.DeleteFunc(slices.Clone(v.Handlers), func(h *handler.Handler) bool {
		return h.Change == nil || !h.MatchesObject(v.asking)
	})
	if len(fields) == 0 || v.body.Deleting {
		return false
	}
	h, err := v.open(ctx)
	if err != nil {
		return false // the next event, or the next process, finds it
	}
	for _, handler := range fields {
		states := h.note.SeenWithin(handler.ID)
		if len(states) > maxStates {
			return true
		}
		for _, seen := range states {
			asking := *v.asking
			asking.Cause = v.forHandlers(h.causeAgainst(seen))
			if handler.Matches(&asking) {
				return true
			}
		}
	}
	return false
}

// behind reports whether some handler or sub-handler finished in the previous handling
// with another essence than the current one.
func (h *handling) behind() bool {
	for _, handler := range h.Handlers {
		if h.causeOf(handler.ID, nil).Reason == cause.Update {
			return true
		}
	}
	return false
}

// causeOf returns the cause as a handler sees it; see causesOf. Of those, it is the one
// that the handler was selected for, or else the first with a difference.
func (h *handling) causeOf(id string, parent *cause.Cause) *cause.Cause {
	if known := h.causes[id]; known != nil {
		return known
	}
	var own *cause.Cause
	for c := range h.causesOf(id, parent) {
		if len(c.Diff) > 0 {
			return c
		}
		if own == nil {
			own = c
		}
	}
	return own
}

// causesOf returns the causes for which a handler may be called. The first is against
// the essence that it saw in the previous handling, or else against what its parent
// saw, or else against the base. The others are against what its sub-handlers saw, if
// that is another state than the present one: only their parent can call them.
//
// Each essence is compared once, however many sub-handlers saw it, and only when the
// loop reaches it: the note may be forged, and a difference can be large.
func (h *handling) causesOf(id string, parent *cause.Cause) iter.Seq[*cause.Cause] {
	return func(yield func(*cause.Cause) bool) {
		own := h.cause
		if parent != nil {
			own = parent
		}
		if !h.note.Followed() {
			yield(own)
			return
		}
		if seen := h.note.Earlier(id); seen != nil {
			own = h.causeAgainst(seen)
		}
		if !yield(own) {
			return
		}
		subs := slices.DeleteFunc(h.note.EarlierWithin(id), func(sub string) bool { return h.declaredWithin(sub, id) })
		states := h.note.EarlierStates(subs)
		if len(states) > maxStates { // none equals an object with contents, so the handler is called rather than not
			states = append(states[:maxStates:maxStates], map[string]any{})
		}
		for _, seen := range states {
			if c := h.causeAgainst(seen); len(c.Diff) > 0 && !yield(c) {
				return
			}
		}
	}
}

// maxStates limits the comparisons of an object with the states that the sub-handlers of one handler saw.
const maxStates = 16

// causeAgainst returns the cause for a handler that last saw the given essence.
func (h *handling) causeAgainst(seen map[string]any) *cause.Cause {
	c := *h.cause
	c.Old = h.undigester.Undigest(seen, c.New)
	c.Diff = diff.Of(c.Old, c.New)
	c.Reason, c.Initial = cause.Detect(cause.Facts{
		Deleting: h.body.Deleting, Blocked: h.blocked, Known: true, Changed: len(c.Diff) > 0, Initial: h.cause.Initial,
	})
	return &c
}

// declaredWithin reports whether a declared handler below id owns the sub-handler. Field
// handlers have such ids: "fn/spec.size" is not a sub-handler of "fn".
func (h *handling) declaredWithin(sub, id string) bool {
	return slices.ContainsFunc(h.Handlers, func(handler *handler.Handler) bool {
		return len(handler.ID) > len(id) && within(sub, handler.ID)
	})
}

// selected returns the handlers that take part in the handling.
func (h *handling) selected() handler.Set {
	if !h.note.Followed() {
		return h.Handlers.Select(h.asking)
	}
	h.causes = map[string]*cause.Cause{}
	return h.Handlers.SelectBy(func(handler *handler.Handler) bool {
		for c := range h.causesOf(handler.ID, nil) {
			asking := *h.asking
			asking.Cause = h.forHandlers(c)
			if handler.Matches(&asking) {
				h.causes[handler.ID] = c
				return true
			}
		}
		return false
	})
}

// end returns the new base and the note for the update that follows. A nil note
// means that no handler would take part in that update.
func (h *handling) end(note *progress.Note) progress.End {
	final := h.cause.New
	if h.body.Deleting || !note.Late(final) {
		return progress.End{Base: final}
	}
	records := maps.Clone(h.records)
	if records == nil {
		records = map[string]storage.Record{}
	}
	maps.Copy(records, h.state.Records())
	for _, handler := range h.Handlers {
		for _, former := range handler.Formerly {
			delete(records, former) // in the next note, it would replace the sighting of the renamed handler
		}
	}
	end := note.End(final, h.cause.Old, records, h.declared(note.Reason))
	if end.Note == nil {
		return end
	}
	next := &handling{view: h.view, reason: cause.Update, state: h.state, note: end.Note}
	c := &cause.Cause{Reason: cause.Update, Old: essence.Undigest(end.Base, final), New: final}
	c.Diff = diff.Of(c.Old, c.New)
	asking := *h.asking
	asking.Cause = h.forHandlers(c)
	next.view = &view{Processor: h.Processor, memory: h.memory, body: h.body, blocked: h.blocked, cause: c, asking: &asking}
	if len(next.selected()) == 0 {
		return progress.End{Base: final}
	}
	return end
}

// declared returns the ids of the handlers that are declared for the reason.
func (h *handling) declared(reason cause.Reason) []string {
	var ids []string
	for _, handler := range h.Handlers {
		if handler.Reasons[reason] && !slices.Contains(ids, handler.ID) {
			ids = append(ids, handler.ID)
		}
	}
	return ids
}

// absorb adds the changes of this write to the essences that the finished handlers
// saw. The write then does not look like a change to them.
func (h *handling) absorb(note *progress.Note, asked *patch.Patch) {
	if asked.Empty() || note.Empty() {
		return
	}
	fields := jsonvalue.Clone(h.body.Map()).(map[string]any)
	patch.Apply(fields, asked.Fold(h.body.Map))
	body, err := object.FromMap(fields)
	if err != nil {
		return // the same error will prevent the write
	}
	note.Absorb(h.cause.New, h.essence(body))
}
