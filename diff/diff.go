// Package diff finds what changed between two JSON values, in the way Kopf
// does: objects are compared key by key, everything else, lists included, as a
// whole.
//
// Values are what JSON decodes into: map[string]any, []any, string, bool, nil,
// and any of Go's number types or [encoding/json.Number]. Other types, named
// ones of these included, are compared as a whole. Nothing is copied: items
// refer to parts of the compared values.
package diff

import (
	"maps"
	"slices"

	"gopf.dev/gopf/internal/fieldpath"
)

// Op says what happened to a value.
type Op string

// What can happen to a value.
const (
	Add    Op = "add"    // it was absent or null
	Change Op = "change" // it was there with another value
	Remove Op = "remove" // it is absent or null now
)

// Item is one difference.
type Item struct {
	// Op says what happened.
	Op Op
	// Path is the keys that lead to the value; it is empty for the whole.
	Path []string
	// Old is the value before; nil if added.
	Old any
	// New is the value after; nil if removed.
	New any
}

// Diff is all differences between two values; it is empty if there are none.
//
// Within one object the added keys come first, then the removed ones, then
// those with differences inside; each group is sorted by key.
type Diff []Item

// Of returns what must happen to old for it to become new.
//
// A key that is null on one side and absent on the other is no difference. A
// whole subtree that is added or removed is one item; so is the creation of the
// whole value, that is, Of(nil, new). Of two equal values nothing is allocated.
func Of(old, new any) Diff {
	w := walker{}
	w.walk(old, new)
	return w.found
}

// Left is [Of] without the keys that only new has, on all levels: it tells
// where new does not have what old asks for, for example where an object does
// not have what was patched into it. A null in old asks for absence.
func Left(old, new any) Diff {
	w := walker{ignoreAdded: true}
	w.walk(old, new)
	return w.found
}

// At reduces the differences to those at the path and below, with paths
// relative to it. If a whole that contains the path was added, changed or
// removed, the difference at the path is found inside of that whole.
// At with no path returns d.
func (d Diff) At(path ...string) Diff {
	if len(path) == 0 {
		return d
	}
	var reduced Diff
	for _, item := range d {
		itemPath := fieldpath.Path(item.Path)
		switch {
		case itemPath.HasPrefix(path...):
			item.Path = item.Path[len(path):]
			reduced = append(reduced, item)
		case fieldpath.Path(path).HasPrefix(item.Path...):
			tail := path[len(item.Path):]
			old, _ := fieldpath.Lookup(item.Old, tail...)
			new, _ := fieldpath.Lookup(item.New, tail...)
			reduced = append(reduced, Of(old, new)...)
		}
	}
	return reduced
}

// walker descends into two values at once.
type walker struct {
	ignoreAdded bool
	path        []string // from the root to the values at hand
	found       Diff
}

func (w *walker) walk(old, new any) {
	if Equal(old, new) {
		return
	}
	oldMap, oldIsMap := old.(map[string]any)
	newMap, newIsMap := new.(map[string]any)
	switch {
	case old == nil:
		w.emit(Add, old, new)
	case new == nil:
		w.emit(Remove, old, new)
	case oldIsMap && newIsMap:
		w.walkMaps(oldMap, newMap)
	default:
		w.emit(Change, old, new)
	}
}

func (w *walker) walkMaps(old, new map[string]any) {
	var common []string
	for _, key := range slices.Sorted(maps.Keys(new)) {
		if _, ok := old[key]; ok {
			common = append(common, key)
		} else if !w.ignoreAdded {
			w.walkKey(key, nil, new[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if _, ok := new[key]; !ok {
			w.walkKey(key, old[key], nil)
		}
	}
	for _, key := range common {
		w.walkKey(key, old[key], new[key])
	}
}

func (w *walker) walkKey(key string, old, new any) {
	w.path = append(w.path, key)
	w.walk(old, new)
	w.path = w.path[:len(w.path)-1]
}

func (w *walker) emit(op Op, old, new any) {
	w.found = append(w.found, Item{Op: op, Path: slices.Clone(w.path), Old: old, New: new})
}
