package storage

import "gopf.dev/gopf/internal/fieldpath"

// Tidy removes the parts of an essence that mean nothing when they are empty:
// metadata.annotations, metadata.labels, metadata, status. An essence is tidy
// after it is built, and Clean of every storage leaves it so. Other parts stay
// also when they are empty.
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
	value, _ := fieldpath.Lookup(essence, "metadata", "annotations")
	annotations, _ := value.(map[string]any)
	for key := range annotations {
		if drop(key) {
			delete(annotations, key)
		}
	}
}

// purge forgets what is at the path: it is deleted from the object if it is
// there, or it is not sent if it was only about to be.
func purge(o Object, p Patch, path ...string) {
	if _, ok := o.Lookup(path...); ok {
		p.Set(nil, path...)
	} else if _, ok := p.Lookup(path...); ok {
		p.Remove(path...)
	}
}
