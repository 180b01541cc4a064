package storage

import (
	"context"
	"errors"
	"slices"
)

// MovedBase stores essences in the present storage. If it has none, they are read from the
// former storages. An essence is moved from there by the next write to the object that
// happens for another reason. The prefix of the present storage must differ from those of
// the former ones.
func MovedBase(present *AnnotationBase, former ...*AnnotationBase) Base {
	all := multiBase{present}
	for _, f := range former {
		all = append(all, f)
	}
	return movedBase{multiBase: all, present: present, former: former}
}

type movedBase struct {
	multiBase // the present storage, then the former ones

	present *AnnotationBase
	former  []*AnnotationBase
}

// AnnotationBases returns the present storage and the former ones.
func (m movedBase) AnnotationBases() []*AnnotationBase {
	return append([]*AnnotationBase{m.present}, m.former...)
}

// Save implements [Base]. The former bases are removed first, because they take up space.
func (m movedBase) Save(ctx context.Context, o Object, p Patch, essence map[string]any) error {
	for _, f := range m.former {
		f.Discard(o, p)
	}
	return m.present.Save(ctx, o, p, essence)
}

// Move adds the move of a former base to the patch, with the annotation that binds it to
// the object. It does nothing if the annotations would become too large. The operator
// does not send a patch for this alone.
func (m movedBase) Move(_ context.Context, o Object, p Patch) error {
	marked := Marked(o)
	for _, f := range m.former {
		if !f.annotations().in(patched{o, p}) {
			continue
		}
		moves := m.moves(patched{o, p}, f, marked)
		growth := 0
		for _, move := range moves {
			growth += len(move.to) + len(move.value)
		}
		if growth > 0 && annotationsSize(o, p, f.allKeys(marked))+growth > AnnotationsLimit {
			continue
		}
		f.Discard(o, p)
		for _, move := range moves {
			m.present.annotations().put(o, p, []string{move.to}, move.value)
		}
		dropMarkers(o, p, []string{f.Prefix})
	}
	return nil
}

// baseMove is an annotation that is moved.
type baseMove struct{ to, value string }

// moves returns the annotations that take a former base to its present place. There are
// none if a newer base exists.
func (m movedBase) moves(o Object, former *AnnotationBase, marked bool) []baseMove {
	plain, compressed := m.present.keys(marked)
	for range values(o, append(slices.Clone(plain), compressed)) {
		return nil
	}
	before, packed := former.keys(marked)
	var moves []baseMove
	for _, value := range values(o, before) {
		for _, to := range plain {
			moves = append(moves, baseMove{to, value})
		}
		break
	}
	for _, value := range values(o, []string{packed}) {
		moves = append(moves, baseMove{compressed, value})
	}
	for _, value := range values(o, []string{former.boundKey(marked)}) {
		if len(moves) > 0 {
			moves = append(moves, baseMove{m.present.boundKey(marked), value})
		}
	}
	return moves
}

// Copied implements [CopyDetector]. Only the base that Load returns counts.
func (m movedBase) Copied(o Object) (uid string, copied bool) {
	marked := Marked(o)
	for _, s := range m.AnnotationBases() {
		plain, compressed := s.keys(marked)
		for range values(o, append(plain, compressed)) {
			return s.Copied(o)
		}
	}
	return "", false
}

// Validate implements [Validator].
func (m movedBase) Validate() error {
	var former []string
	for _, f := range m.former {
		former = append(former, f.Prefix)
	}
	return errors.Join(checkMove("MovedBase", []string{m.present.Prefix}, former), m.multiBase.Validate())
}

// Advice implements [Adviser]. The former storages need none: nothing is stored there.
func (m movedBase) Advice() []string { return m.present.Advice() }
