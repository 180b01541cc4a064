package patch

import (
	"maps"
	"slices"
	"strings"

	"gopf.dev/gopf/diff"
)

// Op is an operation of a JSON patch (RFC 6902).
type Op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitzero"`
}

// Unchanged is the operation that makes a patch fail if the object is not of
// the version any more.
func Unchanged(version string) Op {
	return Op{Op: "test", Path: "/metadata/resourceVersion", Value: version}
}

// Ops makes the operations that do to the decoded JSON what the merge patch
// does. Maps that lose their last key go with it where vanishing says so; it is
// asked with their JSON pointers.
func Ops(fields, merge map[string]any, vanishing func(path string) bool) []Op {
	return ops("", fields, merge, vanishing)
}

func ops(path string, fields, merge map[string]any, vanishing func(string) bool) []Op {
	var out []Op
	for _, key := range slices.Sorted(maps.Keys(merge)) {
		at := path + "/" + pointerEscapes.Replace(key)
		old, there := fields[key]
		wanted := merge[key]
		inner, isMap := wanted.(map[string]any)
		oldMap, wasMap := old.(map[string]any)
		switch {
		case wanted == nil && there:
			out = append(out, Op{Op: "remove", Path: at})
		case wanted == nil:
		case isMap && wasMap && emptied(oldMap, inner) && vanishing(at):
			out = append(out, Op{Op: "remove", Path: at})
		case isMap && wasMap:
			out = append(out, ops(at, oldMap, inner, vanishing)...)
		case isMap:
			value := map[string]any{}
			Apply(value, inner)
			if len(value) > 0 || len(inner) == 0 && !vanishing(at) {
				out = append(out, put(there, at, value))
			}
		case !there || !diff.Equal(old, wanted):
			out = append(out, put(there, at, wanted))
		}
	}
	return out
}

// emptied tells whether a merge patch takes the last keys out of a map.
func emptied(fields, merge map[string]any) bool {
	for _, v := range merge {
		if v != nil {
			return false
		}
	}
	for key := range fields {
		if _, removed := merge[key]; !removed {
			return false
		}
	}
	return len(fields) > 0
}

func put(there bool, path string, value any) Op {
	if there {
		return Op{Op: "replace", Path: path, Value: value}
	}
	return Op{Op: "add", Path: path, Value: value}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
