// Package patch collects the changes to one object and puts them into the
// forms the API takes: merge patches, and JSON patches for finalizers.
package patch

import (
	"maps"

	"gopf.dev/gopf/internal/fieldpath"
)

// Edit changes a decoded object in place. It may be called several times,
// each time on a fresh copy of the newest object.
type Edit func(fields map[string]any)

// Patch is what is to change in one object. The zero value changes nothing.
// It is not safe for concurrent use.
type Patch struct {
	merge map[string]any
	edits []Edit
}

// Set makes the value at the path; nil deletes what is there.
func (p *Patch) Set(v any, path ...string) {
	if p.merge == nil {
		p.merge = map[string]any{}
	}
	at := p.merge
	for _, key := range path[:len(path)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	at[path[len(path)-1]] = v
}

// Merge makes v, the JSON of a value, part of what is at the path: maps are
// merged key by key, anything else is replaced.
//
// Without a path, v must be a map, and becomes part of the whole patch.
func (p *Patch) Merge(v any, path ...string) {
	fields, ok := v.(map[string]any)
	if len(path) == 0 {
		for key, value := range fields {
			p.Merge(value, key)
		}
		return
	}
	if !ok {
		p.Set(v, path...)
		return
	}
	if at, ok := p.Lookup(path...); !ok {
		p.Set(map[string]any{}, path...)
	} else if _, ok := at.(map[string]any); !ok {
		p.Set(map[string]any{}, path...)
	}
	for key, value := range fields {
		p.Merge(value, append(path[:len(path):len(path)], key)...)
	}
}

// Remove takes the path out of the patch, so that it leaves it alone, along
// with parents that become empty. It does not delete anything in the object.
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

// Lookup finds what the patch says about the path; a deletion is a nil found.
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

// Edit adds a function to be run on the newest object before sending.
func (p *Patch) Edit(fn Edit) { p.edits = append(p.edits, fn) }

// Edits are the functions added, in their order.
func (p *Patch) Edits() []Edit { return p.edits }

// Fold runs the edits on a copy of the decoded object and returns the merge patch
// that has their effect as well. The explicit changes come first.
func (p *Patch) Fold(object map[string]any) map[string]any {
	if len(p.edits) == 0 {
		return p.merge
	}
	edited := fieldpath.Clone(object).(map[string]any)
	Apply(edited, p.merge)
	before := fieldpath.Clone(edited).(map[string]any)
	for _, edit := range p.edits {
		edit(edited)
	}
	folded := &Patch{}
	folded.Merge(p.merge)
	folded.Merge(Between(before, edited))
	return folded.merge
}

// Empty tells whether there is nothing to send.
func (p *Patch) Empty() bool { return len(p.merge) == 0 && len(p.edits) == 0 }

// Absorb adds the changes of another patch behind those of this one.
func (p *Patch) Absorb(other *Patch) {
	for key, v := range other.merge {
		p.Merge(v, key)
	}
	p.edits = append(p.edits, other.edits...)
}

// Fields is the merge patch as decoded JSON, without the edits. It is the
// caller's only to read.
func (p *Patch) Fields() map[string]any { return p.merge }

// Split separates the part for the status endpoint from the rest; either may
// be empty.
func (p *Patch) Split() (main, status map[string]any) {
	main = maps.Clone(p.merge)
	if v, ok := main["status"]; ok {
		status = map[string]any{"status": v}
		delete(main, "status")
	}
	return main, status
}
