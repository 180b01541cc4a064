package patch

import (
	"slices"
	"strconv"
)

// AddFinalizer returns the operations that append a finalizer to the current ones, or put
// it in the place of its first former name. All former names are removed. It returns none
// if the finalizer is already there without its former names.
func AddFinalizer(there []string, finalizer string, former ...string) []Op {
	first := slices.IndexFunc(there, func(f string) bool { return slices.Contains(former, f) })
	switch {
	case slices.Contains(there, finalizer):
		return RemoveFinalizer(there, former...)
	case first >= 0:
		rest := slices.Clone(there)
		rest[first] = finalizer
		return append([]Op{{Op: "replace", Path: "/metadata/finalizers/" + strconv.Itoa(first), Value: finalizer}}, RemoveFinalizer(rest, former...)...)
	case len(there) == 0:
		return []Op{{Op: "add", Path: "/metadata/finalizers", Value: []string{finalizer}}}
	}
	return []Op{{Op: "add", Path: "/metadata/finalizers/-", Value: finalizer}}
}

// maxRemovals limits the operations that remove single finalizers. An object may have the
// same finalizer many thousand times, and API servers reject patches of more than 10,000
// operations.
const maxRemovals = 100

// RemoveFinalizer returns the operations that remove all occurrences of the finalizers
// from the current ones, or the whole list if it becomes empty. It returns none if none of
// them is there.
func RemoveFinalizer(there []string, finalizers ...string) []Op {
	ours := func(f string) bool { return slices.Contains(finalizers, f) }
	switch {
	case !slices.ContainsFunc(there, ours):
		return nil
	case !slices.ContainsFunc(there, func(f string) bool { return !ours(f) }):
		return []Op{{Op: "remove", Path: "/metadata/finalizers"}}
	}
	if rest := slices.DeleteFunc(slices.Clone(there), ours); len(there)-len(rest) > maxRemovals {
		return []Op{{Op: "replace", Path: "/metadata/finalizers", Value: rest}}
	}
	var ops []Op
	for i, f := range slices.Backward(there) { // backwards, because removals shift later indexes
		if ours(f) {
			ops = append(ops, Op{Op: "remove", Path: "/metadata/finalizers/" + strconv.Itoa(i)})
		}
	}
	return ops
}
