package fieldpath

import "fmt"

// Lookup returns the value at the path. A missing key, or anything but an
// object on the way, is "not found"; a null at the path itself is found.
// The empty path finds the root.
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

// Set puts the value at the path and makes the objects on the way that are
// missing. It fails and changes nothing if something on the way is not an
// object, or if the path is empty.
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

// Remove deletes what is at the path, and then every parent that is an empty
// object, also if it was empty before. A path that leads nowhere is no error.
// Remove fails and changes nothing if something on the way is not an object,
// or if the path is empty: the root cannot be removed.
func Remove(root map[string]any, path ...string) error {
	if err := passable(root, path); err != nil {
		return err
	}
	remove(root, path)
	return nil
}

// Drop is [Remove] for those to whom a path that is blocked by something other
// than an object is a path with nothing at its end.
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

// passable tells why the path cannot be followed: it checks all before
// anything is changed.
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

// Clone is a deep copy of decoded JSON.
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
