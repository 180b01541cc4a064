package jsonvalue

import "fmt"

// Lookup returns the value at the path. It is not found if a key is missing or if a
// parent is not an object. A null at the path is found. The empty path finds the root.
func Lookup(root any, path ...string) (any, bool) {
	for _, key := range path {
		parent, ok := root.(map[string]any)
		if !ok {
			return nil, false
		}
		if root, ok = parent[key]; !ok {
			return nil, false
		}
	}
	return root, true
}

// Set sets the value at the path and creates missing parents. It fails and changes
// nothing if a parent is not an object, or if the path is empty.
func Set(root map[string]any, value any, path ...string) error {
	if err := passable(root, path); err != nil {
		return err
	}
	last := len(path) - 1
	for _, key := range path[:last] {
		child, ok := root[key].(map[string]any)
		if !ok {
			child = map[string]any{}
			root[key] = child
		}
		root = child
	}
	root[path[last]] = value
	return nil
}

// Remove deletes the value at the path, and then every parent that is an empty object,
// even if it was empty before. A missing value is not an error. Remove fails and changes
// nothing if a parent is not an object, or if the path is empty: the root cannot be
// removed.
func Remove(root map[string]any, path ...string) error {
	if err := passable(root, path); err != nil {
		return err
	}
	remove(root, path)
	return nil
}

// Drop is [Remove] without errors: if a parent is not an object, it does nothing.
func Drop(root map[string]any, path ...string) {
	if passable(root, path) == nil {
		remove(root, path)
	}
}

func remove(root map[string]any, path Path) {
	key := path[0]
	if len(path) == 1 {
		delete(root, key)
		return
	}
	child, ok := root[key].(map[string]any)
	if !ok {
		return
	}
	if remove(child, path[1:]); len(child) == 0 {
		delete(root, key)
	}
}

// passable returns an error if the path is empty or if a parent is not an object.
func passable(root map[string]any, path Path) error {
	if len(path) == 0 {
		return fmt.Errorf("the path is empty: the root can be neither set nor removed")
	}
	for i, key := range path[:len(path)-1] {
		value, ok := root[key]
		if !ok {
			return nil
		}
		if root, ok = value.(map[string]any); !ok {
			return fmt.Errorf("%s: %s is %T, not an object", path, path[:i+1], value)
		}
	}
	return nil
}

// Clone returns a deep copy of decoded JSON.
func Clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = Clone(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Clone(item)
		}
		return out
	}
	return v
}
