package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// stateProgress is the progress in a [StatusState], for one kind.
type stateProgress struct {
	*StatusState

	inStatus bool
}

var (
	_ Progress  = stateProgress{}
	_ Untoucher = stateProgress{}
	_ Placed    = stateProgress{}
	_ Validator = stateProgress{}
	_ IDChecker = stateProgress{}
	_ Tracer    = stateProgress{}
	_ Adviser   = stateProgress{}
)

// State returns the state that the storage belongs to.
func (s stateProgress) State() *StatusState { return s.StatusState }

// InStatus implements [Placed].
func (s stateProgress) InStatus() bool { return s.inStatus }

// FromAnnotations reports whether the records of the object are in annotations.
func (s stateProgress) FromAnnotations(o Object) bool {
	return s.holder(o, s.inStatus) == inAnnotations
}

// Load implements [Progress].
func (s stateProgress) Load(ctx context.Context, o Object, ids []string) (map[string]Record, error) {
	at := s.holder(o, s.inStatus)
	return s.progressAt(at).Load(ctx, s.only(o, at), ids)
}

// Save implements [Progress]. If the state is in another place, the patch makes the
// present place hold it. Then the operator calls Move or MoveToStatus, which add the rest
// of the state.
func (s stateProgress) Save(ctx context.Context, o Object, p Patch, changed map[string]Record, purge []string) error {
	at := s.holder(o, s.inStatus)
	switch {
	case !s.inStatus:
		return s.saveInAnnotations(ctx, o, p, at, changed, purge)
	case at == 0, at == inAnnotations && !s.inAnnotations(o):
		return s.places[0].progress.Save(ctx, o, p, changed, purge)
	}
	there, err := s.load(ctx, o, at, purge)
	if err != nil {
		return err
	}
	if err := s.places[0].progress.Save(ctx, o, p, changed, purge); err != nil {
		return err
	}
	for _, id := range purge {
		if _, ok := there[id]; ok {
			p.Set(nil, s.places[0].progress.path(id)...) // MoveToStatus must not move it
		}
	}
	if len(changed)+len(there) > 0 {
		s.noteMove(o, p)
	}
	return nil
}

// saveInAnnotations puts records into annotations. If the status holds the state,
// annotations from an earlier move are ignored: their removal alone is no reason for a
// write, so it is left to Move.
func (s stateProgress) saveInAnnotations(ctx context.Context, o Object, p Patch, at int, changed map[string]Record, ids []string) error {
	if at == inAnnotations {
		return s.progress.Save(ctx, o, p, changed, ids)
	}
	kept := maps.Clone(changed)
	maps.DeleteFunc(kept, func(id string, _ Record) bool { return slices.Contains(ids, id) })
	if err := s.progress.Save(ctx, o, p, kept, nil); err != nil {
		return err
	}
	for _, id := range slices.Concat(slices.Sorted(maps.Keys(changed)), ids) {
		purge(o, p, s.places[at].progress.path(id)...)
	}
	return nil
}

// MoveToStatus adds the move of the state to the status to a patch that writes the
// status anyway. ids are those of all handlers. Records that the patch has or removes
// stay as they are there.
func (s stateProgress) MoveToStatus(ctx context.Context, o Object, p Patch, ids []string) error {
	at := s.holder(o, true)
	if at == 0 || at == inAnnotations && !s.inAnnotations(o) {
		return nil
	}
	records, err := s.load(ctx, o, at, ids)
	if err != nil {
		return err
	}
	place := s.places[0]
	for _, id := range slices.Sorted(maps.Keys(records)) {
		if _, ok := p.Lookup(place.progress.path(id)...); !ok {
			p.Set(records[id].Fields(), place.progress.path(id)...)
		}
	}
	if err := s.dropObsolete(ctx, o, p, ids); err != nil {
		return err
	}
	if _, ok := p.Lookup(place.base.Field...); !ok {
		essence, found, err := s.baseAt(at).Load(ctx, s.only(o, at))
		if err != nil && !errors.As(err, new(*MalformedError)) {
			return err
		}
		if err == nil && found {
			if err := place.base.Save(ctx, o, p, essence); err != nil {
				return err
			}
		}
	}
	if at > 0 {
		s.places[at].drop(o, p)
	}
	for _, place := range s.retired {
		if place.in(o) {
			p.Set(nil, place.progress.Field...)
		}
	}
	s.noteMove(o, p)
	return nil
}

// dropObsolete removes the records that the status had before the move, except those that
// the patch sets. They are older than the state that is moved.
func (s stateProgress) dropObsolete(ctx context.Context, o Object, p Patch, ids []string) error {
	obsolete, err := s.load(ctx, o, 0, ids)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(obsolete)) {
		path := s.places[0].progress.path(id)
		if _, ok := p.Lookup(path...); !ok {
			p.Set(nil, path...)
		}
	}
	return nil
}

// DropAnnotations removes the annotations from which the state was moved to the status.
// ids has the ids of all handlers. The operator sends no patch for this alone.
func (s stateProgress) DropAnnotations(ctx context.Context, o Object, p Patch, ids []string) error {
	if s.holder(o, true) != 0 {
		return nil
	}
	noted, since := s.places[0].note(o)
	if !since || noted != hashOf([]byte(s.annotationText(o))) || !s.inAnnotations(o) {
		return nil
	}
	records, err := s.load(ctx, o, inAnnotations, ids)
	if err != nil {
		return err
	}
	all := slices.Concat(ids, slices.Sorted(maps.Keys(records)))
	if err := s.progress.Save(ctx, withoutKeys{o, s.keys}, p, nil, all); err != nil {
		return err
	}
	if u, ok := s.progress.(Untoucher); ok {
		u.Untouch(o, p)
	}
	for _, b := range s.bases {
		b.Discard(o, p)
	}
	dropMarkers(o, p, s.prefixes)
	return nil
}

// FinishMove removes the note about a move from the status. From then on, annotations of
// the object are ignored, whatever they are.
func (s stateProgress) FinishMove(o Object, p Patch) {
	if _, noted := s.places[0].note(o); noted && s.holder(o, true) == 0 && !s.inAnnotations(o) {
		p.Set(nil, s.places[0].moved...)
	}
}

// Move adds the move of the records to the annotations to a patch that writes them
// anyway; see [MovedProgress]. It replaces all records that an earlier move to the status
// left in annotations.
func (s stateProgress) Move(ctx context.Context, o Object, p Patch, ids []string) error {
	if s.inStatus {
		return nil
	}
	if at := s.holder(o, false); at != inAnnotations {
		if err := s.moveToAnnotations(ctx, o, p, at, ids); err != nil {
			return err
		}
	}
	if inner, ok := s.progress.(movedProgress); ok {
		return inner.Move(ctx, o, p, ids)
	}
	return nil
}

func (s stateProgress) moveToAnnotations(ctx context.Context, o Object, p Patch, at int, ids []string) error {
	records, err := s.load(ctx, o, at, ids)
	if err != nil {
		return err
	}
	maps.DeleteFunc(records, func(id string, _ Record) bool { // the patch has or removes it
		_, ok := p.Lookup(s.places[at].progress.path(id)...)
		return ok
	})
	left, err := s.load(ctx, o, inAnnotations, ids)
	if err != nil {
		return err
	}
	gone := slices.Compact(slices.Sorted(slices.Values(slices.Concat(ids, slices.Collect(maps.Keys(left))))))
	written, err := s.load(ctx, snapshotOf(patched{stateless{o}, p}), inAnnotations, gone)
	if err != nil {
		return err
	}
	gone = slices.DeleteFunc(gone, func(id string) bool {
		_, moved := records[id]
		_, has := written[id]
		return moved || has
	})
	return s.progress.Save(ctx, withoutKeys{o, s.keys}, p, records, gone)
}

// stateless is an object without annotations and status.
type stateless struct{ Object }

// Lookup implements [Object].
func (o stateless) Lookup(path ...string) (any, bool) {
	if len(path) > 0 && path[0] == "status" || len(path) > 1 && path[0] == "metadata" && path[1] == "annotations" {
		return nil, false
	}
	return o.Object.Lookup(path...)
}

// Clean implements [Progress].
func (s stateProgress) Clean(essence map[string]any) {
	s.progress.Clean(essence)
	s.clean(essence)
}

// Untouch implements [Untoucher].
func (s stateProgress) Untouch(o Object, p Patch) {
	if s.inStatus {
		s.places[0].progress.Untouch(o, p)
	} else if u, ok := s.progress.(Untoucher); ok {
		u.Untouch(o, p)
	}
}

// Validate implements [Validator].
func (s stateProgress) Validate() error {
	return errors.Join(s.validate(), validate([]Progress{s.progress}))
}

// CheckID implements [IDChecker]: a kind whose status cannot keep the state has it in
// annotations. The results of a handler are in the status under its id, so they must not
// replace the state.
func (s stateProgress) CheckID(id string) error {
	if s.inStatus && id == s.keys[0] {
		return fmt.Errorf("the state of the operator is in status.%s, where the results of the handler would be; use another id or another key", id)
	}
	return multiProgress{s.progress}.CheckID(id)
}

// Advice implements [Adviser].
func (s stateProgress) Advice() []string { return advice([]Progress{s.progress}) }

// Traces implements [Tracer].
func (s stateProgress) Traces() (t Traces, ok bool) { return s.traces() }
