package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/jsonvalue"
)

// MovedProgress stores records in the present storage. Records in the former storages are
// read if the present one has none for the same id. They are moved by the next write to
// the object that happens for another reason.
//
// All storages must store records on the objects, and the present one must not store them
// in the status: otherwise a crash between two requests could lose records. The prefix of
// the present storage must differ from those of the former ones.
func MovedProgress(present Progress, former ...Progress) Progress {
	all := multiProgress{present}
	for _, f := range former {
		all = append(all, RetiredProgress(f))
	}
	return movedProgress{multiProgress: all, present: present, former: former}
}

type movedProgress struct {
	multiProgress // the present storage, then the former ones, retired

	present Progress
	former  []Progress
}

// Save stores the records in the present storage, and removes them from the former ones.
// Records that it only deletes leave no marker: a marker alone would be a write.
func (m movedProgress) Save(ctx context.Context, o Object, p Patch, changed map[string]Record, purge []string) error {
	changed = maps.Clone(changed)
	maps.DeleteFunc(changed, func(id string, _ Record) bool { return slices.Contains(purge, id) })
	if err := m.present.Save(ctx, o, p, changed, purge); err != nil {
		return err
	}
	gone := slices.Concat(slices.Sorted(maps.Keys(changed)), purge)
	for _, f := range m.former {
		if err := f.Save(ctx, o, p, nil, gone); err != nil {
			return err
		}
	}
	m.dropKeys(o, p)
	return nil
}

// Move adds the move of the records with these ids, and of their sub-handlers, to the
// patch. Records that the patch already moves or removes stay as they are there. The
// operator does not send a patch for this alone.
func (m movedProgress) Move(ctx context.Context, o Object, p Patch, ids []string) error {
	// Records may be forged: thousands of them, each with the next one as its sub-handler. So the state
	// after the patch is computed once, and not for each record or level.
	now := snapshotOf(patched{o, p})
	found, known := map[string]Record{}, map[string]bool{}
	for len(ids) > 0 {
		var subs []string
		for _, id := range ids {
			known[id] = true
		}
		for _, f := range m.former {
			records, err := f.Load(ctx, now, ids)
			if err != nil && !errors.As(err, new(*MalformedError)) {
				return err
			}
			for id, r := range records {
				found[id] = r
				for _, sub := range r.Subrefs {
					if !known[sub] {
						known[sub], subs = true, append(subs, sub)
					}
				}
			}
			ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { // the record of an earlier storage counts
				_, ok := records[id]
				return ok
			})
		}
		ids = subs
	}
	if err := m.move(ctx, o, p, found); err != nil {
		return err
	}
	m.dropKeys(o, p)
	traces, _ := tracesOfAll(m.former)
	dropMarkers(o, p, traces.Prefixes)
	return nil
}

// dropKeys removes the former keys of the status that the patch empties.
func (m movedProgress) dropKeys(o Object, p Patch) {
	traces, _ := tracesOfAll(m.former)
	for _, key := range traces.Keys {
		if _, touched := p.Lookup("status", key); !touched {
			continue
		}
		if left, _ := (patched{o, p}).Lookup("status", key); left != nil && empty(left) {
			p.Set(nil, "status", key)
		}
	}
}

// empty reports whether a value consists of empty objects only.
func empty(value any) bool {
	fields, ok := value.(map[string]any)
	for _, field := range fields {
		ok = ok && empty(field)
	}
	return ok
}

// move adds the move of these records to the patch, unless the present storage has them.
func (m movedProgress) move(ctx context.Context, o Object, p Patch, found map[string]Record) error {
	if len(found) == 0 {
		return nil
	}
	newer, err := m.present.Load(ctx, snapshotOf(patched{o, p}), slices.Sorted(maps.Keys(found)))
	if err != nil && !errors.As(err, new(*MalformedError)) {
		return err
	}
	unmoved := maps.Clone(found)
	maps.DeleteFunc(unmoved, func(id string, _ Record) bool { _, ok := newer[id]; return ok })
	if err := m.present.Save(ctx, o, p, unmoved, nil); err != nil {
		return err
	}
	for _, f := range m.former {
		if err := f.Save(ctx, o, p, nil, slices.Sorted(maps.Keys(found))); err != nil {
			return err
		}
	}
	return nil
}

// Untouch implements [Untoucher].
func (m movedProgress) Untouch(o Object, p Patch) {
	multiProgress(append([]Progress{m.present}, m.former...)).Untouch(o, p)
	traces, _ := tracesOfAll(m.former)
	dropMarkers(o, p, traces.Prefixes)
}

// Validate implements [Validator].
func (m movedProgress) Validate() error {
	for _, s := range m.former {
		if _, ok := s.(Placed); !ok {
			return errors.New("MovedProgress: a former storage may store records outside of the objects; move them with MultiProgress")
		}
	}
	if placed, ok := m.present.(Placed); !ok || placed.InStatus() {
		return errors.New("MovedProgress: the present storage must store records on the objects, and not in the status; move them with MultiProgress")
	}
	before, _ := tracesOfAll(m.former)
	now, _ := traces(m.present)
	return errors.Join(checkMove("MovedProgress", now.Prefixes, before.Prefixes), m.multiProgress.Validate())
}

// Advice implements [Adviser]. The former storages need none: nothing is stored there.
func (m movedProgress) Advice() []string { return advice([]Progress{m.present}) }

// CheckID implements [IDChecker].
func (m movedProgress) CheckID(id string) error { return multiProgress{m.present}.CheckID(id) }

// checkMove returns an error if state would be moved to the place where it is.
func checkMove(what string, present, former []string) error {
	for _, prefix := range former {
		if slices.Contains(present, prefix) {
			return fmt.Errorf("%s: the prefix %q is both present and former", what, prefix)
		}
	}
	return nil
}

// dropMarkers removes the marker of each prefix that has no other annotations after the
// patch. Annotations of users may have the prefix as well. The marker keeps these from
// looking like changes, so it stays with them.
func dropMarkers(o Object, p Patch, prefixes []string) {
	for _, prefix := range prefixes {
		marker := prefix + "/" + managedMarker
		marked, others := false, false
		for key := range annotationsOf(patched{o, p}) {
			marked = marked || key == marker
			others = others || key != marker && strings.HasPrefix(key, prefix+"/")
		}
		if marked && !others {
			purge(o, p, "metadata", "annotations", marker)
		}
	}
}

// patched is an object as it will be after the patch.
type patched struct {
	Object
	patch Patch
}

// Lookup implements [Object].
func (o patched) Lookup(path ...string) (any, bool) {
	before, found := o.Object.Lookup(path...)
	var change any
	for i := range path {
		value, ok := o.patch.Lookup(path[:i+1]...)
		if !ok {
			return before, found
		}
		if _, within := value.(map[string]any); !within && i < len(path)-1 {
			return nil, false
		}
		change = value
	}
	after := merged(before, change)
	return after, after != nil
}

// snapshot is a patched object that merges each part only once. Later changes of the patch are not
// seen.
type snapshot struct {
	Object
	parts map[[2]string]any // by the first two keys of their paths; nil means none
}

func snapshotOf(of patched) snapshot { return snapshot{of, map[[2]string]any{}} }

// Lookup implements [Object].
func (s snapshot) Lookup(path ...string) (any, bool) {
	if len(path) < 2 {
		return s.Object.Lookup(path...)
	}
	key := [2]string{path[0], path[1]}
	part, known := s.parts[key]
	if !known {
		part, _ = s.Object.Lookup(path[0], path[1])
		s.parts[key] = part
	}
	if len(path) == 2 {
		return part, part != nil
	}
	fields, _ := part.(map[string]any)
	return jsonvalue.Lookup(fields, path[2:]...)
}

// merged returns the value after a merge patch. It does not modify them.
func merged(value, change any) any {
	fields, ok := change.(map[string]any)
	if !ok {
		return change
	}
	old, _ := value.(map[string]any)
	after := make(map[string]any, len(old)+len(fields))
	maps.Copy(after, old)
	for key, change := range fields {
		if after[key] = merged(old[key], change); after[key] == nil {
			delete(after, key)
		}
	}
	return after
}
