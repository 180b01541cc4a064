// Package storagetest provides the tests that implementations of [storage.Progress] and
// [storage.Base] must pass, and simple objects and patches for these tests.
//
// Test your own storage like this:
//
//	func TestMyProgress(t *testing.T) {
//		storagetest.Progress(t, myStorage)
//	}
package storagetest

import (
	"maps"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/storage"
)

// Body is an object decoded from JSON.
type Body map[string]any

var _ storage.Object = Body{}

// Identity implements [storage.Object]. Missing fields are empty.
func (b Body) Identity() storage.Identity {
	text := func(path ...string) string {
		value, _ := b.Lookup(path...)
		text, _ := value.(string)
		return text
	}
	return storage.Identity{
		APIVersion: text("apiVersion"),
		Kind:       text("kind"),
		Namespace:  text("metadata", "namespace"),
		Name:       text("metadata", "name"),
		UID:        text("metadata", "uid"),
	}
}

// Lookup implements [storage.Object].
func (b Body) Lookup(path ...string) (any, bool) {
	return jsonvalue.Lookup(map[string]any(b), path...)
}

// Apply returns the object after the patch. It changes neither of them.
func (b Body) Apply(p Patch) Body {
	return merge(b, p)
}

// Patch is a merge patch. An empty map is an empty patch.
type Patch map[string]any

var _ storage.Patch = Patch{}

// Set implements [storage.Patch]. It panics if the path is empty, or if a parent exists
// and is not an object.
func (p Patch) Set(v any, path ...string) {
	if err := jsonvalue.Set(p, v, path...); err != nil {
		panic(err)
	}
}

// Remove implements [storage.Patch].
func (p Patch) Remove(path ...string) {
	jsonvalue.Drop(p, path...)
}

// Lookup implements [storage.Patch].
func (p Patch) Lookup(path ...string) (any, bool) {
	return jsonvalue.Lookup(map[string]any(p), path...)
}

// merge applies a merge patch according to RFC 7386.
func merge(object, patch map[string]any) map[string]any {
	merged := maps.Clone(object)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(merged, key)
		case map[string]any:
			child, _ := merged[key].(map[string]any)
			merged[key] = merge(child, value)
		default:
			merged[key] = value
		}
	}
	return merged
}
