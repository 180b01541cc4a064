package patch

import (
	"slices"
	"strconv"
)

// AddFinalizer makes the operations that append the finalizer to those there
// are; none if it is there already.
func AddFinalizer(there []string, finalizer string) []Op {
	switch {
	case slices.Contains(there, finalizer):
		return nil
	case len(there) == 0:
		return []Op{{Op: "add", Path: "/metadata/finalizers", Value: []string{finalizer}}}
	}
	return []Op{{Op: "add", Path: "/metadata/finalizers/-", Value: finalizer}}
}

// RemoveFinalizer makes the operations that take out all occurrences of the
// finalizer, and the list once it is empty; none if it is not there.
func RemoveFinalizer(there []string, finalizer string) []Op {
	switch {
	case !slices.Contains(there, finalizer):
		return nil
	case !slices.ContainsFunc(there, func(f string) bool { return f != finalizer }):
		return []Op{{Op: "remove", Path: "/metadata/finalizers"}}
	}
	var ops []Op
	for i, f := range slices.Backward(there) { // backwards, so that the indices stay true
		if f == finalizer {
			ops = append(ops, Op{Op: "remove", Path: "/metadata/finalizers/" + strconv.Itoa(i)})
		}
	}
	return ops
}
