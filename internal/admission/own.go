package admission

import (
	"slices"
	"strings"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/storage"
)

// Own describes the operator's own writes to objects: finalizers and records. The
// operator's webhooks must not block them.
//
// An UPDATE is allowed without calling handlers if and only if the old and the new
// object differ only by one of these changes:
//
//   - Finalizers are removed while the object is being deleted, by any account.
//   - The operator's own account changes annotations of the operator's prefixes, the
//     operator's finalizer or its former names, or the operator's keys of the status.
//
// Fields that the API server itself maintains with each write do not count:
// metadata.managedFields, and for writes of the operator metadata.generation.
//
// [Own.Conditions] is the same rule for the API server.
type Own struct {
	Account   string   // the user name of the operator; "" means unknown: its writes are then reviewed
	Finalizer string   // may be empty
	Former    []string // former names of the finalizer
	Prefixes  []string // the prefixes of the operator's annotations, without the slash
	Keys      []string // the operator's keys at the top level of the status
}

// OwnOf describes the fields that the framework writes on objects: the finalizer, with its
// former names, and the keys of the storages that implement [storage.Tracer].
func OwnOf(finalizer string, former []string, storages ...any) *Own {
	own := &Own{Finalizer: finalizer, Former: former}
	for _, kept := range storages {
		if tracer, ok := kept.(storage.Tracer); ok {
			places, _ := tracer.Traces() // records outside the object, such as in a database, do not matter here
			own.Prefixes, own.Keys = append(own.Prefixes, places.Prefixes...), append(own.Keys, places.Keys...)
		}
	}
	slices.Sort(own.Prefixes)
	slices.Sort(own.Keys)
	own.Prefixes, own.Keys = slices.Compact(own.Prefixes), slices.Compact(own.Keys)
	return own
}

// anonymous is the user name of requests without credentials.
const anonymous = "system:anonymous"

// exempts reports whether a review is allowed without calling handlers.
func (o Own) exempts(r *handler.Review) bool {
	if r.Operation != "UPDATE" || r.Old == nil || r.New == nil {
		return false
	}
	switch r.Subresource {
	case "":
		if r.Old.Deleting && released(r.Old.Map(), r.New.Map()) {
			return true
		}
	case "status":
	default:
		return false // the objects may be of another kind, with only a part of the fields
	}
	return o.Account != "" && r.User.Username == o.Account && o.covers(r.Old.Map(), r.New.Map())
}

// released reports whether the objects differ only by removed finalizers.
func released(before, after map[string]any) bool {
	if !equalExcept(before, after, is("metadata")) {
		return false
	}
	was, now := part(before, "metadata"), part(after, "metadata")
	if was == nil || now == nil || !equalExcept(was, now, is("finalizers", "managedFields")) {
		return false
	}
	old, ok := finalizers(was)
	left, fine := finalizers(now)
	return ok && fine && onlyRemoved(old, left)
}

// onlyRemoved reports whether some finalizers were removed, and none added or moved.
func onlyRemoved(old, left []any) bool {
	if len(left) >= len(old) {
		return false
	}
	stays := make(map[any]bool, len(left)) // any client can send a review, with hundreds of thousands of finalizers
	for _, f := range left {
		stays[f] = true
	}
	kept := slices.DeleteFunc(slices.Clone(old), func(f any) bool { return !stays[f] })
	return slices.Equal(kept, left)
}

// covers reports whether the objects differ only by the operator's own writes.
func (o Own) covers(before, after map[string]any) bool {
	if !equalExcept(before, after, is("metadata", "status")) {
		return false
	}
	was, now := part(before, "metadata"), part(after, "metadata")
	if was == nil || now == nil || !equalExcept(was, now, is("annotations", "finalizers", "managedFields", "generation")) {
		return false
	}
	old, ok := finalizers(was)
	left, fine := finalizers(now)
	own := func(f any) bool {
		name, _ := f.(string)
		return name != "" && (name == o.Finalizer || slices.Contains(o.Former, name))
	}
	if !ok || !fine || !slices.Equal(slices.DeleteFunc(slices.Clone(old), own), slices.DeleteFunc(slices.Clone(left), own)) {
		return false
	}
	return equalParts(was, now, "annotations", o.prefixed) && equalParts(before, after, "status", is(o.Keys...))
}

// prefixed reports whether an annotation has one of the operator's prefixes.
func (o Own) prefixed(key string) bool {
	return slices.ContainsFunc(o.Prefixes, func(p string) bool { return strings.HasPrefix(key, p+"/") })
}

// is returns a function that reports whether its argument is one of the keys.
func is(keys ...string) func(string) bool {
	return func(key string) bool { return slices.Contains(keys, key) }
}

// part returns a member that is an object. nil means that it is missing or not an object.
func part(of map[string]any, name string) map[string]any {
	m, _ := of[name].(map[string]any)
	return m
}

// finalizers returns the list of an object's finalizers. It returns false if the field is
// not a list of strings.
func finalizers(metadata map[string]any) ([]any, bool) {
	v, present := metadata["finalizers"]
	if !present {
		return nil, true
	}
	list, ok := v.([]any)
	return list, ok && !slices.ContainsFunc(list, func(f any) bool { _, text := f.(string); return !text })
}

// equalParts reports whether the members of this name are equal except for some keys. A
// missing member is equal to an empty object.
func equalParts(before, after map[string]any, name string, except func(string) bool) bool {
	for _, of := range []map[string]any{before, after} {
		if v, present := of[name]; present {
			if _, ok := v.(map[string]any); !ok {
				return equalExcept(before, after, func(key string) bool { return key != name })
			}
		}
	}
	return equalExcept(part(before, name), part(after, name), except)
}

// equalExcept reports whether two JSON objects are equal except for some keys.
func equalExcept(before, after map[string]any, except func(string) bool) bool {
	for key, v := range after {
		if except(key) {
			continue
		}
		if old, there := before[key]; !there || !diff.Equal(old, v) {
			return false
		}
	}
	for key := range before {
		if _, there := after[key]; !there && !except(key) {
			return false
		}
	}
	return true
}
