package patch

import (
	"slices"
	"strconv"
)

// AddFinalizer returns the operations that append a finalizer to the current ones. It
// returns none if the finalizer is already there.
func AddFinalizer(there []string, finalizer string) []Op {
	switch {
	case slices.Contains(there, finalizer):
		return nil
	case len(there) == 0:
		return []Op{{Op: "add", Path: "/metadata/finalizers", Value: []string{finalizer}}}
	}
	return []Op{{Op: "add", Path: "/metadata/finalizers/-", Value: finalizer}}
}

// RemoveFinalizer returns the operations that remove all occurrences of a finalizer
// from the current ones, or the whole list if it becomes empty. It returns none if the
// finalizer is not there.
func RemoveFinalizer(there []string, finalizer string) []Op {
	switch {
	case !slices.Contains(there, finalizer):
		return nil
	case !slices.ContainsFunc(there, func(f string) bool { return f != finalizer }):
		return []Op{{Op: "remove", Path: "/metadata/finalizers"}}
	}
	var ops []Op
	for i, f := range slices.Backward(there) { // backwards, because removals shift later indexes
		if f == finalizer {
			ops = append(ops, Op{Op: "remove", Path: "/metadata/finalizers/" + strconv.Itoa(i)})
		}
	}
	return ops
}
