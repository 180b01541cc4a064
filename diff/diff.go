// Package diff finds what changed between two JSON values, in the way Kopf
// does: objects are compared key by key, everything else, lists included, as a
// whole.
//
// Values are what JSON decodes into: map[string]any, []any, string, bool, nil,
// and any of Go's number types or [encoding/json.Number]. Other types, named
// ones of these included, are compared as a whole. Nothing is copied: items
// refer to parts of the compared values.
//
// Time and memory are proportional to the size of the values, however deeply
// they are nested. To keep that, objects below the 16th level are compared as a
// whole once the paths of the items take more than 16 MiB.
package diff

import "gopf.dev/gopf/internal/fieldpath"

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
	return comparison{}.of(old, new)
}

// Left is [Of] without the keys that only new has, on all levels: it tells
// where new does not have what old asks for, for example where an object does
// not have what was patched into it. A null in old asks for absence.
func Left(old, new any) Diff {
	return comparison{ignoreAdded: true}.of(old, new)
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
