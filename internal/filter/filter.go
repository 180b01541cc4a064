// Package filter matches objects and their changes against the criteria of a
// handler. It is pure.
package filter

import (
	"gopf.dev/gopf/diff"
)

// Matcher tells whether a value will do; present is false if there is none.
type Matcher func(value any, present bool) bool

// Any accepts everything, and nothing.
func Any(any, bool) bool { return true }

// Present accepts whatever is there.
func Present(_ any, present bool) bool { return present }

// Absent accepts only nothing.
func Absent(_ any, present bool) bool { return !present }

// Equal accepts values equal to want as JSON; numbers are compared by value.
func Equal(want any) Matcher {
	return func(v any, present bool) bool { return present && diff.Equal(v, want) }
}

// Object is what filters look at.
type Object interface {
	Labels() map[string]any
	Annotations() map[string]any
	Lookup(path ...string) (any, bool)
}

// Criteria are the filters of one handler. All of them must match.
type Criteria struct {
	Labels      []Key
	Annotations []Key
	Fields      []Field // of the current object
}

// Key is a criterion for a label or an annotation.
type Key struct {
	Name  string
	Match Matcher
}

// Field is a criterion for a value inside of the object.
type Field struct {
	Path  []string
	Match Matcher
}

// Match tells whether the object as it is now meets the criteria.
func (c Criteria) Match(o Object) bool {
	return matchKeys(c.Labels, o.Labels) && matchKeys(c.Annotations, o.Annotations) && matchFields(c.Fields, o)
}

func matchKeys(keys []Key, values func() map[string]any) bool {
	for _, k := range keys {
		v, present := values()[k.Name]
		if !k.Match(v, present) {
			return false
		}
	}
	return true
}

func matchFields(fields []Field, o Object) bool {
	for _, f := range fields {
		if !f.Match(o.Lookup(f.Path...)) {
			return false
		}
	}
	return true
}

// Value is something found at a path, or the lack of it.
type Value struct {
	Is      any
	Present bool
}

// Change is a criterion for a field over time.
type Change struct {
	Path     []string
	Value    Matcher // of the value before or after; nil asks for any value there
	Old, New Matcher // of the value before, and after; nil for whatever
}

// Touches tells whether any of the values will do, whichever side of the
// change it is on.
func (c Change) Touches(values ...Value) bool {
	match := c.Value
	if match == nil {
		match = Present
	}
	for _, v := range values {
		if match(v.Is, v.Present) {
			return true
		}
	}
	return false
}

// Happened tells whether the field went from a fitting value to a fitting
// value. With moved, it must have changed, too: a null is not nothing.
func (c Change) Happened(old, new Value, moved bool) bool {
	if moved && old.Present == new.Present && diff.Equal(old.Is, new.Is) {
		return false
	}
	return (c.Old == nil || c.Old(old.Is, old.Present)) && (c.New == nil || c.New(new.Is, new.Present))
}
