// Package diff computes the differences between two JSON values like Kopf does: objects are
// compared key by key, and all other values, including lists, as a whole.
//
// Values are the types of decoded JSON: map[string]any, []any, string, bool, nil, and any
// of Go's number types or [encoding/json.Number]. Other types, including named variants of
// these, are compared as a whole. Nothing is copied: items refer to parts of the compared
// values.
//
// Time and memory are proportional to the size of the values, regardless of their depth.
// To guarantee that, objects below the 16th level are compared as a whole once the paths of
// the items take more than 16 MiB. If there are more than 65,536 differences, objects below
// the second level are compared as a whole, or those below the first one, or the whole values.
package diff

import "gopf.dev/gopf/internal/jsonvalue"

// Op is the type of a difference.
type Op string

// The types of differences.
const (
	Add    Op = "add"    // it was absent or null before
	Change Op = "change" // it had another value before
	Remove Op = "remove" // it is absent or null now
)

// Item is one difference.
type Item struct {
	// Op is the type of the difference.
	Op Op
	// Path is the list of keys to the value. Empty means the whole value.
	Path []string
	// Old is the former value. nil means that the value was added.
	Old any
	// New is the new value. nil means that the value was removed.
	New any
}

// Diff lists all differences between two values. It is empty if there are none.
//
// Within one object the added keys come first, then the removed ones, then
// those with differences inside; each group is sorted by key.
type Diff []Item

// Of returns the differences that turn old into new.
//
// A key that is null on one side and absent on the other is not a difference. A subtree
// that is added or removed as a whole is one item, and so is Of(nil, new). Equal values
// cost no allocation. Where the paths of many changes would take much memory, because they are
// deep or have long keys, one item stands for all changes below a place.
func Of(old, new any) Diff {
	return of(old, new, false)
}

// Left is [Of] without the keys that only new has, on all levels. It returns where new
// lacks the values of old, for example where an object lacks the values of a patch. A null
// in old requires absence.
func Left(old, new any) Diff {
	return of(old, new, true)
}

// At returns the differences at the path and below it, with paths relative to it. If an item
// above the path was added, changed or removed as a whole, At compares the values at the
// path within that item. Without a path, it returns d.
func (d Diff) At(path ...string) Diff {
	if len(path) == 0 {
		return d
	}
	var reduced Diff
	for _, item := range d {
		itemPath := jsonvalue.Path(item.Path)
		switch {
		case itemPath.HasPrefix(path...):
			item.Path = item.Path[len(path):]
			reduced = append(reduced, item)
		case jsonvalue.Path(path).HasPrefix(item.Path...):
			tail := path[len(item.Path):]
			old, _ := jsonvalue.Lookup(item.Old, tail...)
			new, _ := jsonvalue.Lookup(item.New, tail...)
			reduced = append(reduced, Of(old, new)...)
		}
	}
	return reduced
}
