package handler

import (
	metalabels "k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf/diff"
)

// Matcher reports whether a value matches. present is false if there is no value; a
// JSON null is present.
type Matcher func(value any, present bool) bool

// Any matches every value and also a missing one.
func Any(any, bool) bool { return true }

// Present matches every value, including null, but not a missing one.
func Present(_ any, present bool) bool { return present }

// Absent matches only a missing value.
func Absent(_ any, present bool) bool { return !present }

// Equal returns a matcher of values that are equal to want as JSON. Numbers are
// compared by value.
func Equal(want any) Matcher {
	return func(v any, present bool) bool { return present && diff.Equal(v, want) }
}

// Object is the view of an object that criteria need.
type Object interface {
	Labels() map[string]any
	Annotations() map[string]any
	Lookup(path ...string) (any, bool)
}

// Criteria has the filters of one handler. All of them must match. The zero value
// matches every object.
type Criteria struct {
	Labels      []Key
	Annotations []Key
	Fields      []Field
	Selector    metalabels.Selector // of [Handler.Select]; nil matches all labels
}

// Key is a criterion for a label or an annotation.
type Key struct {
	Name  string
	Match Matcher
	Want  string // describes Match; "" means unknown
}

// Field is a criterion for the value at a path.
type Field struct {
	Path  []string
	Match Matcher
	Want  string // describes Match; "" means unknown
	Doubt string // why the path may be wrong, as a sentence; "" means no doubt
}

// Match reports whether the object meets all criteria.
func (c Criteria) Match(o Object) bool { return c.miss(o) == Miss{} }

// miss returns the first criterion that the object does not meet.
func (c Criteria) miss(o Object) Miss {
	if !Selects(c.Selector, o) {
		return Miss{Criterion: OfSelector}
	}
	if i := missedKey(c.Labels, o.Labels); i >= 0 {
		return Miss{OfLabel, i}
	}
	if i := missedKey(c.Annotations, o.Annotations); i >= 0 {
		return Miss{OfAnnotation, i}
	}
	for i := range c.Fields {
		if !c.Fields[i].Match(o.Lookup(c.Fields[i].Path...)) {
			return Miss{OfField, i}
		}
	}
	return Miss{}
}

// Selects reports whether the labels of the object match. A nil selector matches all.
func Selects(s metalabels.Selector, o Object) bool {
	return s == nil || s.Empty() || s.Matches(labelled(o.Labels()))
}

// labelled has the labels of an object, for selectors. Values that are no texts count as
// empty.
type labelled map[string]any

func (l labelled) Has(label string) bool { _, has := l[label]; return has }

func (l labelled) Get(label string) string { text, _ := l[label].(string); return text }

func (l labelled) Lookup(label string) (string, bool) { return l.Get(label), l.Has(label) }

// missedKey returns the index of the first key that does not match, or -1.
func missedKey(keys []Key, values func() map[string]any) int {
	for i := range keys {
		v, present := values()[keys[i].Name]
		if !keys[i].Match(v, present) {
			return i
		}
	}
	return -1
}

// Value is the value at a path. The zero value means that there is none.
type Value struct {
	Is      any
	Present bool
}

// Change is a criterion for the change of a field.
type Change struct {
	Path     []string
	Value    Matcher // matches the old or the new value; nil means [Present]
	Old, New Matcher // match the old and the new value; nil means [Any]
	Want     Wants   // describes the matchers
	Doubt    string  // why the path may be wrong, as a sentence; "" means no doubt
}

// Touches reports whether c.Value matches at least one of the values.
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

// Wants has the descriptions of the matchers of a [Change]. "" means unknown.
type Wants struct{ Value, Old, New string }

// Happened reports whether c.Old matches the old value and c.New the new one. If moved
// is true, the values must also differ; null and a missing value are different.
func (c Change) Happened(old, new Value, moved bool) bool { return c.missed(old, new, moved) == Met }

// missed returns the first criterion that the change of the field does not meet.
func (c Change) missed(old, new Value, moved bool) Criterion {
	switch {
	case moved && old.Present == new.Present && diff.Equal(old.Is, new.Is):
		return OfMove
	case c.Old != nil && !c.Old(old.Is, old.Present):
		return OfOldValue
	case c.New != nil && !c.New(new.Is, new.Present):
		return OfNewValue
	}
	return Met
}
