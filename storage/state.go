package storage

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"gopf.dev/gopf/internal/jsonvalue"
)

// StatusState keeps the whole state of objects in their status: progress, handling note
// and base, all under one key. It also knows the annotations in which Kopf or an earlier
// version of the operator kept the state, and moves state between the two places.
//
// State is never in two places at once, as far as an operator can see: one of them holds
// it, and the other one is ignored. State that was moved to the status holds, until the
// base in the annotations differs from the one at the time of the move: then another
// operator has worked since. Annotations on an object that never had its state there are
// ignored, because any client that may edit the object can write them.
//
// Create one by [NewStatusState].
type StatusState struct {
	keys     []string // the present key, then former ones
	places   []statusPlace
	progress Progress // in annotations
	base     Base     // in annotations
	bases    []*AnnotationBase
	retired  []statusPlace // where progress also reads records of old versions of Kopf
	prefixes []string      // of the annotations that progress uses
}

// statusPlace has the storages under one key of the status.
type statusPlace struct {
	progress *StatusProgress
	base     *StatusBase
	moved    []string // the path of the note about a move
}

// movedName is the key in the state for a digest of the base that the annotations had
// when the state was moved from there. Kopf ignores it.
const movedName = "moved"

// inAnnotations is the place of state that is in no key of the status.
const inAnnotations = -1

// NewStatusState returns the state under status.<key>. State under the former keys, and
// in annotations as stored by progress and base, counts until it is moved.
func NewStatusState(key string, former []string, progress Progress, base Base) *StatusState {
	s := &StatusState{keys: []string{key}, progress: progress, base: base, bases: annotationBases(base)}
	for _, f := range former {
		if !slices.Contains(s.keys, f) {
			s.keys = append(s.keys, f)
		}
	}
	for _, k := range s.keys {
		s.places = append(s.places, placeOf(k))
	}
	t, _ := traces(progress)
	s.prefixes = t.Prefixes
	for _, k := range slices.Compact(slices.Sorted(slices.Values(t.Keys))) {
		if !slices.Contains(s.keys, k) {
			s.retired = append(s.retired, placeOf(k))
		}
	}
	return s
}

func placeOf(key string) statusPlace {
	return statusPlace{NewStatusProgress(key), NewStatusBase(key), []string{"status", key, movedName}}
}

func annotationBases(base Base) []*AnnotationBase {
	switch base := base.(type) {
	case *AnnotationBase:
		return []*AnnotationBase{base}
	case movedBase:
		return base.AnnotationBases()
	}
	return nil
}

// Storages returns storages for one kind. inStatus reports whether new state goes to the
// status. Otherwise it goes to annotations, and state in the status counts until it is
// moved there.
func (s *StatusState) Storages(inStatus bool) (Progress, Base) {
	return stateProgress{s, inStatus}, stateBase{s, inStatus}
}

// Annotations returns the storages in annotations alone, for kinds that never had state
// in the status.
func (s *StatusState) Annotations() (Progress, Base) { return s.progress, s.base }

// Keys returns the present key in the status, and then the former ones.
func (s *StatusState) Keys() []string { return s.keys }

// AnnotationBases returns the storages of the base in annotations.
func (s *StatusState) AnnotationBases() []*AnnotationBase { return s.bases }

var validKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`)

// validate returns an error if the state cannot be kept.
func (s *StatusState) validate() error {
	for _, key := range s.keys {
		if !validKey.MatchString(key) {
			return fmt.Errorf("invalid key %q for state in the status; use letters, digits, \"-\" and \"_\", at most 63 of them", key)
		}
	}
	if len(s.bases) == 0 {
		return errors.New("state in the status: the base outside of the status must be in annotations; use storage.NewAnnotationBase")
	}
	if _, ok := s.progress.(Placed); !ok {
		return errors.New("state in the status: the progress outside of the status must be on the objects; use storage.NewAnnotationProgress")
	}
	return nil
}

// holder returns the index of the key that holds the state of the object, or
// inAnnotations. An object without any state is in annotations.
func (s *StatusState) holder(o Object, inStatus bool) int {
	at := slices.IndexFunc(s.places, func(p statusPlace) bool { return p.in(o) })
	if at < 0 {
		return inAnnotations
	}
	text := s.annotationText(o)
	noted, since := s.places[at].note(o)
	worked := since && noted != hashOf([]byte(text)) // another operator, after the move
	switch {
	case inStatus && worked && text != "":
		return inAnnotations
	case !inStatus && (worked || !since) && (text != "" || !s.places[at].hasBase(o) && s.inAnnotations(o)):
		// The move from the status was interrupted, or another operator has worked. A move
		// never leaves the base behind: records without one are of handlers that an earlier
		// version had.
		return inAnnotations
	}
	return at
}

// in reports whether the object has state in the place.
func (place statusPlace) in(o lookuper) bool {
	if place.hasBase(o) {
		return true
	}
	progress, _ := o.Lookup(place.progress.Field...)
	records, _ := progress.(map[string]any)
	return len(records) > 0
}

func (place statusPlace) hasBase(o lookuper) bool {
	base, _ := o.Lookup(place.base.Field...)
	return base != nil
}

// note returns the digest that was noted when the state was moved to the place.
func (place statusPlace) note(o lookuper) (digest string, found bool) {
	value, _ := o.Lookup(place.moved...)
	digest, found = value.(string)
	return digest, found
}

// annotationText returns the base in the annotations as it is stored. It is empty if
// there is none.
func (s *StatusState) annotationText(o Object) string {
	for _, b := range s.bases {
		if !b.annotations().in(o) {
			continue
		}
		plain, compressed := b.keys(Marked(o))
		for _, text := range values(o, append(plain, compressed)) {
			return text
		}
	}
	return ""
}

// inAnnotations reports whether annotations of the object may have state.
func (s *StatusState) inAnnotations(o Object) bool {
	for key := range annotationsOf(o) {
		for _, prefix := range s.prefixes {
			if (annotations{prefix: prefix}).own(key) && !aboutPrefix(key[len(prefix)+1:]) {
				return true
			}
		}
	}
	return s.annotationText(o) != "" || slices.ContainsFunc(s.retired, func(p statusPlace) bool { return p.in(o) })
}

// aboutPrefix reports whether the annotation with the name is not part of the state.
func aboutPrefix(name string) bool {
	return name == managedMarker || name == "pause" || name == "touch-dummy" || name == boundName
}

// Contested reports whether another operator keeps state of the object in annotations,
// although its state is in the status. ignored reports whether that state is ignored.
func (s *StatusState) Contested(o Object) (contested, ignored bool) {
	text := s.annotationText(o)
	if text == "" {
		return false, false
	}
	at := slices.IndexFunc(s.places, func(p statusPlace) bool { return p.in(o) })
	if at < 0 {
		return false, false
	}
	noted, since := s.places[at].note(o)
	return !since || noted != hashOf([]byte(text)), !since
}

// progressAt returns the storage of progress in a place.
func (s *StatusState) progressAt(at int) Progress {
	if at == inAnnotations {
		return s.progress
	}
	return s.places[at].progress
}

func (s *StatusState) baseAt(at int) Base {
	if at == inAnnotations {
		return s.base
	}
	return s.places[at].base
}

// only returns the object as the storage in a place must see it. Storages in annotations
// may also read the status, for records of old versions of Kopf. They must not read the
// keys of this state.
func (s *StatusState) only(o Object, at int) Object {
	if at == inAnnotations {
		return withoutKeys{o, s.keys}
	}
	return o
}

// withoutKeys is an object without some keys of its status.
type withoutKeys struct {
	Object
	keys []string
}

// Lookup implements [Object].
func (o withoutKeys) Lookup(path ...string) (any, bool) {
	if len(path) > 1 && path[0] == "status" && slices.Contains(o.keys, path[1]) {
		return nil, false
	}
	return o.Object.Lookup(path...)
}

// noteMove notes in the patch that the state is moved from the annotations. Objects that
// have no state there get no note.
func (s *StatusState) noteMove(o Object, p Patch) {
	if s.inAnnotations(o) {
		p.Set(hashOf([]byte(s.annotationText(o))), s.places[0].moved...)
	}
}

// MovedFrom reports whether state in the status was moved from annotations with this
// base, according to the note in the status. Both are as they are stored.
func MovedFrom(base, note []byte) bool { return hashOf(base) == string(note) }

// drop removes the state in the place from the object, and the key if nothing else is left.
func (place statusPlace) drop(o Object, p Patch) {
	for _, path := range [][]string{place.progress.Field, place.progress.TouchField, place.base.Field, place.moved} {
		if _, ok := (patched{o, p}).Lookup(path...); ok {
			p.Set(nil, path...)
		}
	}
	key := place.moved[:2]
	if left, found := (patched{o, p}).Lookup(key...); found && empty(left) {
		p.Set(nil, key...)
	}
}

// load returns the records with the ids and those of their sub-handlers. Malformed ones
// are omitted.
func (s *StatusState) load(ctx context.Context, o Object, at int, ids []string) (map[string]Record, error) {
	all, known := map[string]Record{}, map[string]bool{}
	for len(ids) > 0 {
		found, err := s.progressAt(at).Load(ctx, s.only(o, at), ids)
		if err != nil && !errors.As(err, new(*MalformedError)) {
			return nil, err
		}
		for _, id := range ids {
			known[id] = true
		}
		ids = nil
		for id, r := range found {
			all[id] = r
			for _, sub := range r.Subrefs {
				if !known[sub] {
					known[sub], ids = true, append(ids, sub)
				}
			}
		}
	}
	return all, nil
}

// clean removes the traces in the status from an essence.
func (s *StatusState) clean(essence map[string]any) {
	for _, p := range s.places {
		p.progress.Clean(essence)
		p.base.Clean(essence)
		jsonvalue.Drop(essence, p.moved...)
	}
	Tidy(essence)
}

// traces returns all places of the state.
func (s *StatusState) traces() (t Traces, ok bool) {
	t, ok = tracesOfAll([]any{s.progress, s.base})
	t.Keys = append(t.Keys, s.keys...)
	return t, ok
}
