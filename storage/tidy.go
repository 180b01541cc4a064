package storage

import "gopf.dev/gopf/internal/jsonvalue"

// Tidy removes parts of an essence that are empty: metadata.annotations, metadata.labels,
// metadata and status. Other empty parts stay. A newly built essence is tidy, and Clean of
// every storage keeps it so.
func Tidy(essence map[string]any) {
	if metadata, ok := essence["metadata"].(map[string]any); ok {
		dropEmpty(metadata, "annotations")
		dropEmpty(metadata, "labels")
	}
	dropEmpty(essence, "metadata")
	dropEmpty(essence, "status")
}

func dropEmpty(parent map[string]any, key string) {
	empty := false
	switch value := parent[key].(type) {
	case nil:
		empty = true
	case map[string]any:
		empty = len(value) == 0
	case []any:
		empty = len(value) == 0
	case string:
		empty = value == ""
	}
	if empty {
		delete(parent, key)
	}
}

// dropAnnotations removes the annotations whose keys satisfy the condition.
func dropAnnotations(essence map[string]any, drop func(key string) bool) {
	value, _ := jsonvalue.Lookup(essence, "metadata", "annotations")
	annotations, _ := value.(map[string]any)
	for key := range annotations {
		if drop(key) {
			delete(annotations, key)
		}
	}
}

// purge deletes the path from the object if it exists there. Otherwise it removes the path
// from the patch.
func purge(o Object, p Patch, path ...string) {
	if _, ok := o.Lookup(path...); ok {
		p.Set(nil, path...)
	} else if _, ok := p.Lookup(path...); ok {
		p.Remove(path...)
	}
}
