// Package storagetest has the tests that a storage of progress or bases must
// pass, and the simple objects and patches that these tests run on.
//
// A storage of one's own is tested like this:
//
//	func TestMyProgress(t *testing.T) {
//		storagetest.Progress(t, myStorage)
//	}
package storagetest

import (
	"maps"

	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/storage"
)

// Body is an object as decoded from JSON.
type Body map[string]any

var _ storage.Object = Body{}

// Identity implements [storage.Object]: what is missing is empty.
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
	return fieldpath.Lookup(map[string]any(b), path...)
}

// Apply returns the object as it is after the patch; neither is changed.
func (b Body) Apply(p Patch) Body {
	return merge(b, p)
}

// Patch is a merge patch that is empty at first.
type Patch map[string]any

var _ storage.Patch = Patch{}

// Set implements [storage.Patch]. It panics if a parent has a value other than
// an object, and for the empty path.
func (p Patch) Set(v any, path ...string) {
	if err := fieldpath.Set(p, v, path...); err != nil {
		panic(err)
	}
}

// Remove implements [storage.Patch].
func (p Patch) Remove(path ...string) {
	fieldpath.Drop(p, path...)
}

// Lookup implements [storage.Patch].
func (p Patch) Lookup(path ...string) (any, bool) {
	return fieldpath.Lookup(map[string]any(p), path...)
}

// merge applies a merge patch as RFC 7386 has it.
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
