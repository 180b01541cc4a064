// Package patch collects the changes to one object and converts them to merge patches,
// or to JSON patches for finalizers. It is pure.
package patch

import (
	"maps"
	"reflect"
	"slices"

	"gopf.dev/gopf/internal/jsonvalue"
)

// Edit modifies a decoded object in place. It may be called several times, each time
// with a new copy of the newest object.
type Edit func(fields map[string]any)

// Patch has the changes to one object. The zero value changes nothing. It is not safe
// for concurrent use.
type Patch struct {
	merge  map[string]any
	edits  []Edit
	parts  []*[]any // of each edit; nil means that it has none
	nested int      // maps in paths; see [Patch.SetNested]
	texts  int      // see [Patch.Charge]
	whole  bool     // an edit needs more of the object than the status
	open   *[]any   // the parts of the last edit, if [Patch.Join] added it and others may follow
}

// Set sets the value at the path; nil deletes the field. The path must not be empty.
func (p *Patch) Set(v any, path ...string) { p.SetNested(v, path) }

// SetNested is [Patch.Set], and returns the number of maps that it, and all such calls, have added.
func (p *Patch) SetNested(v any, path []string) (made, all int) {
	if p.merge == nil {
		p.merge = map[string]any{}
	}
	at := p.merge
	for _, key := range path[:len(path)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
			made++
		}
		at = next
	}
	at[path[len(path)-1]] = v
	p.nested += made
	return made, p.nested
}

// Charge counts texts that a handler is about to put into the patch. It reports whether all texts are
// within the limit. Values that were replaced do not count.
func (p *Patch) Charge(bytes, limit int) (ok bool) {
	if p.texts += bytes; p.texts > limit {
		p.texts = jsonvalue.TextSize(p.merge, limit) + bytes
	}
	return p.texts <= limit
}

// Merge merges v, a decoded JSON value, into the patch at the path: maps are merged key
// by key, other values are replaced. Without a path, v must be a map and is merged into
// the whole patch.
func (p *Patch) Merge(v any, path ...string) {
	fields, ok := v.(map[string]any)
	if len(path) == 0 {
		if p.merge == nil && len(fields) > 0 {
			p.merge = make(map[string]any, len(fields))
		}
		merge(p.merge, fields)
		return
	}
	if !ok {
		p.Set(v, path...)
		return
	}
	found, _ := p.Lookup(path...)
	at, ok := found.(map[string]any)
	if !ok {
		at = make(map[string]any, len(fields))
		p.Set(at, path...)
	}
	merge(at, fields)
}

// merge merges fields into a patch, and copies their maps.
func merge(into, fields map[string]any) {
	for key, v := range fields {
		inner, ok := v.(map[string]any)
		if !ok {
			into[key] = v
			continue
		}
		at, ok := into[key].(map[string]any)
		if !ok {
			at = make(map[string]any, len(inner))
			into[key] = at
		}
		merge(at, inner)
	}
}

// Remove removes the path from the patch, and parents that become empty. The patch then
// does not touch the field; use [Patch.Set] with nil to delete it from the object.
func (p *Patch) Remove(path ...string) { remove(p.merge, path) }

func remove(at map[string]any, path []string) {
	if len(path) == 1 {
		delete(at, path[0])
		return
	}
	next, ok := at[path[0]].(map[string]any)
	if !ok {
		return
	}
	remove(next, path[1:])
	if len(next) == 0 {
		delete(at, path[0])
	}
}

// Lookup returns the value of the patch at the path. A deletion is found as nil.
func (p *Patch) Lookup(path ...string) (any, bool) {
	var v any = p.merge
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[key]; !ok {
			return nil, false
		}
	}
	return v, true
}

// Edit adds a function that runs on the newest object before the patch is sent.
func (p *Patch) Edit(fn Edit) { p.add(fn, nil); p.whole = true }

func (p *Patch) add(fn Edit, parts *[]any) {
	p.edits, p.parts, p.open = append(p.edits, fn), append(p.parts, parts), parts
}

// Join adds a part to the last edit, if that has parts of the same Go type, or else an edit with
// this part. A handler may add thousands, and each edit costs as much as the object is large.
// All parts of a type must have the same function.
func (p *Patch) Join(part any, edit func(fields map[string]any, parts []any)) {
	if p.open != nil && reflect.TypeOf((*p.open)[0]) == reflect.TypeOf(part) {
		*p.open = append(*p.open, part)
		return
	}
	parts := &[]any{part}
	p.add(func(fields map[string]any) { edit(fields, *parts) }, parts)
	p.whole = true
}

// EditStatus adds a function like Edit. It must read and change nothing but the status: it
// may be called with an object that has no other fields.
func (p *Patch) EditStatus(fn Edit) { p.add(fn, nil) }

// EditsWhole reports whether the edits need the whole object, and not only its status.
func (p *Patch) EditsWhole() bool { return p.whole }

// Edits returns the added functions, in the order of addition.
func (p *Patch) Edits() []Edit { return p.edits }

// OnlyEdits returns the patch without its explicit changes.
func (p *Patch) OnlyEdits() Patch { return p.With(nil) }

// With returns the patch with these explicit changes instead of those of p. It owns them.
func (p *Patch) With(merge map[string]any) Patch {
	p.open = nil // two patches have its edits now
	return Patch{merge: merge, edits: p.edits, parts: p.parts, whole: p.whole}
}

// KeepEdits drops the oldest edits if there are more than n with all parts, but never the last
// one. It reports whether there were.
func (p *Patch) KeepEdits(n int) (dropped bool) {
	from := len(p.edits)
	for all := 0; from > 0; from-- {
		if parts := p.parts[from-1]; parts != nil {
			all += len(*parts) - 1
		}
		if all++; all > n && from < len(p.edits) {
			break
		}
	}
	if from == 0 {
		return false
	}
	p.edits, p.parts = slices.Clone(p.edits[from:]), slices.Clone(p.parts[from:])
	return true
}

// Minus returns the patch without the explicit changes of fields that another merge patch has.
func (p *Patch) Minus(other map[string]any) Patch {
	return p.With(Minus(p.merge, other))
}

// Fold returns one merge patch with the explicit changes and the effect of the edits.
// It runs the edits on a copy of the decoded object, after the explicit changes. Without
// edits, it does not ask for the object, because decoding one is expensive.
func (p *Patch) Fold(object func() map[string]any) map[string]any {
	if len(p.edits) == 0 {
		return p.merge
	}
	edited := jsonvalue.Clone(object()).(map[string]any)
	Apply(edited, p.merge)
	before := jsonvalue.Clone(edited).(map[string]any)
	for _, edit := range p.edits {
		edit(edited)
	}
	folded := &Patch{}
	folded.Merge(p.merge)
	folded.Merge(Between(before, edited))
	return folded.merge
}

// Empty reports whether the patch has neither changes nor edits.
func (p *Patch) Empty() bool { return len(p.merge) == 0 && len(p.edits) == 0 }

// Absorb adds the changes and edits of another patch after those of p.
func (p *Patch) Absorb(other *Patch) {
	p.Merge(other.merge)
	p.edits, p.parts, p.whole = append(p.edits, other.edits...), append(p.parts, other.parts...), p.whole || other.whole
	p.open, other.open = nil, nil // both have its edits now
}

// Fields returns the merge patch as decoded JSON, without the edits. The caller must
// not modify it.
func (p *Patch) Fields() map[string]any { return p.merge }

// Split returns the merge patch in two: for the status subresource, and for the rest of
// the object. Either may be empty. Edits are ignored. The caller must not modify them.
func (p *Patch) Split() (main, status map[string]any) {
	v, ok := p.merge["status"]
	switch {
	case !ok:
		return p.merge, nil
	case len(p.merge) == 1:
		return nil, p.merge
	}
	main = maps.Clone(p.merge)
	delete(main, "status")
	return main, map[string]any{"status": v}
}
