package patch

import (
	"maps"
	"slices"
	"strings"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/jsonvalue"
)

// Op is an operation of a JSON patch (RFC 6902).
type Op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitzero"`
}

// Unchanged returns a test operation: the patch fails if the object has another
// resource version.
func Unchanged(version string) Op {
	return Op{Op: "test", Path: "/metadata/resourceVersion", Value: version}
}

// Ops converts a merge patch to JSON patch operations for the decoded object fields,
// which it does not modify. vanishing takes the JSON pointer of a map and reports
// whether the map is removed when it loses its last key.
//
// A map with many changes is replaced as a whole, because API servers accept at most 10,000
// operations. Other clients may have added keys since fields was read, so the patch must be bound to
// that version.
func Ops(fields, merge map[string]any, vanishing func(path string) bool) []Op {
	all := ops("", fields, merge, vanishing, manyChanges)
	if len(all) > mostOps {
		all = ops("", fields, merge, vanishing, 0)
	}
	return all
}

const (
	// manyChanges is the number of changed keys above which a map is replaced as a whole.
	manyChanges = 1000
	// mostOps is the number of operations above which all changed maps are replaced as a whole. The
	// metadata are not, because the fields may lack some of them.
	mostOps = 9000
	// longPointer is the size of a JSON pointer, in bytes, above which a map is replaced as a
	// whole if several of its fields change. Otherwise each operation on a field would repeat the
	// long pointer: one key of 100 KB above 10,000 changed fields makes a patch of 1 GB.
	longPointer = 1024
	// longestPointer is the size above which this also holds for one field: the pointers of all
	// levels are in memory together, and 900 levels with keys of 1.5 KB took 583 MB.
	longestPointer = 16 << 10
)

func ops(path string, fields, merge map[string]any, vanishing func(string) bool, many int) []Op {
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
		case isMap && wasMap && (len(at) > longPointer && (len(inner) > 1 || len(at) > longestPointer) || len(inner) > many && at != "/metadata"):
			value := jsonvalue.Clone(oldMap).(map[string]any)
			Apply(value, inner)
			if !diff.Equal(oldMap, value) {
				out = append(out, put(there, at, value))
			}
		case isMap && wasMap:
			out = append(out, ops(at, oldMap, inner, vanishing, many)...)
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

// emptied reports whether a merge patch removes the last keys of a map.
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

// put returns the operation that sets a value, which replaces one that is there.
func put(there bool, path string, value any) Op {
	if there {
		return Op{Op: "replace", Path: path, Value: value}
	}
	return Op{Op: "add", Path: path, Value: value}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
