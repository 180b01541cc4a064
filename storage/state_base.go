package storage

import (
	"context"
	"slices"
)

// stateBase is the base in a [StatusState], for one kind.
type stateBase struct {
	*StatusState

	inStatus bool
}

var (
	_ Base          = stateBase{}
	_ ObjectCleaner = stateBase{}
	_ CopyDetector  = stateBase{}
	_ Validator     = stateBase{}
	_ Tracer        = stateBase{}
	_ Adviser       = stateBase{}
)

// State returns the state that the storage belongs to.
func (s stateBase) State() *StatusState { return s.StatusState }

// InStatus reports whether new essences go to the status.
func (s stateBase) InStatus() bool { return s.inStatus }

// Load implements [Base].
func (s stateBase) Load(ctx context.Context, o Object) (essence map[string]any, found bool, err error) {
	at := s.holder(o, s.inStatus)
	return s.baseAt(at).Load(ctx, s.only(o, at))
}

// Save implements [Base].
func (s stateBase) Save(ctx context.Context, o Object, p Patch, essence map[string]any) error {
	if !s.inStatus {
		return s.base.Save(ctx, o, p, essence)
	}
	if s.holder(o, true) == inAnnotations {
		s.noteMove(o, p)
	}
	return s.places[0].base.Save(ctx, o, p, essence)
}

// Move adds the move of the base to the annotations to a patch that writes them anyway,
// and the removal of the state from the status; see [MovedBase]. If the base is too large
// for annotations, it returns a [*TooLargeError], and the caller should save a digest.
func (s stateBase) Move(ctx context.Context, o Object, p Patch) error {
	if s.inStatus {
		return nil
	}
	if at := s.holder(o, false); at != inAnnotations && !s.writes(o, p) {
		essence, found, err := s.places[at].base.Load(ctx, o)
		if err == nil && found {
			err = s.base.Save(ctx, o, p, essence)
		}
		if err != nil {
			return err
		}
	}
	s.DropKeys(o, p)
	if inner, ok := s.base.(movedBase); ok {
		return inner.Move(ctx, o, p)
	}
	return nil
}

// writes reports whether the patch sets or removes the base in the annotations. The
// object may have the same base there: an earlier move to the status left it.
func (s stateBase) writes(o Object, p Patch) bool {
	changed := annotationsOf(p)
	return slices.ContainsFunc(s.bases, func(b *AnnotationBase) bool {
		plain, compressed := b.keys(Marked(o))
		return slices.ContainsFunc(append(plain, compressed), func(key string) bool {
			_, ok := changed[key]
			return ok
		})
	})
}

// DropKeys removes the state from the status.
func (s stateBase) DropKeys(o Object, p Patch) {
	for _, place := range s.places {
		place.drop(o, p)
	}
}

// Clean implements [Base].
func (s stateBase) Clean(essence map[string]any) {
	s.base.Clean(essence)
	s.clean(essence)
}

// CleanObject implements [ObjectCleaner].
func (s stateBase) CleanObject(o Object, essence map[string]any) {
	multiBase{s.base}.CleanObject(o, essence)
	s.clean(essence)
}

// Copied implements [CopyDetector]. Copies of an object have its annotations, but not its
// status.
func (s stateBase) Copied(o Object) (uid string, copied bool) {
	if s.holder(o, s.inStatus) != inAnnotations {
		return "", false
	}
	return multiBase{s.base}.Copied(o)
}

// Discard implements [Discarder]. Annotations that were copied from another object stay
// if the state of this one goes to the status: they are ignored from then on, and their
// removal would be another request.
func (s stateBase) Discard(o Object, p Patch) {
	_, copied := s.Copied(o)
	for _, place := range s.places {
		place.base.Discard(o, p)
	}
	if !s.inStatus || !copied {
		multiBase{s.base}.Discard(o, p)
	}
}

// Validate implements [Validator].
func (s stateBase) Validate() error { return validate([]Base{s.base}) }

// Advice implements [Adviser].
func (s stateBase) Advice() []string { return advice([]Base{s.base}) }

// Traces implements [Tracer].
func (s stateBase) Traces() (t Traces, ok bool) { return s.traces() }
