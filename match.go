package gopf

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/filter"
	"gopf.dev/gopf/internal/jsonvalue"
)

// Matcher tells whether the value of a label, an annotation or a field will
// do.
type Matcher struct {
	match filter.Matcher

	// What the cluster can check by itself of a label; "" if it cannot.
	operator metav1.LabelSelectorOperator
	value    string
}

// What need not be compared with anything.
var (
	Any     = Matcher{match: filter.Any}                                                  // whatever there is, or nothing
	Present = Matcher{match: filter.Present, operator: metav1.LabelSelectorOpExists}      // whatever there is
	Absent  = Matcher{match: filter.Absent, operator: metav1.LabelSelectorOpDoesNotExist} // nothing
)

// Is matches what equals the value as JSON. What JSON cannot hold equals nothing.
func Is(value any) Matcher {
	wanted, err := asJSON(value)
	if err != nil {
		return Matcher{match: func(any, bool) bool { return false }}
	}
	m := Matcher{match: filter.Equal(wanted)}
	if text, ok := wanted.(string); ok {
		m.operator, m.value = metav1.LabelSelectorOpIn, text
	}
	return m
}

// Matching matches what the function says; present is false if there is no
// value.
func Matching(fn func(value any, present bool) bool) Matcher { return Matcher{match: fn} }

// problem tells what is wrong with a matcher, if anything.
func (m Matcher) problem() string {
	if m.match == nil {
		return "a filter has no condition: use one of Is, Present, Absent, Matching, …"
	}
	return ""
}

// Not matches what m does not.
func Not(m Matcher) Matcher {
	return Matcher{match: func(v any, present bool) bool { return !m.match(v, present) }}
}

// AllOf matches what all of them do.
func AllOf(ms ...Matcher) Matcher {
	return Matcher{match: func(v any, present bool) bool {
		for _, m := range ms {
			if !m.match(v, present) {
				return false
			}
		}
		return true
	}}
}

// AnyOf matches what any of them does.
func AnyOf(ms ...Matcher) Matcher {
	return Matcher{match: func(v any, present bool) bool {
		for _, m := range ms {
			if m.match(v, present) {
				return true
			}
		}
		return false
	}}
}

// NoneOf matches what none of them does.
func NoneOf(ms ...Matcher) Matcher { return Not(AnyOf(ms...)) }

// asJSON turns a user's value into what JSON decodes to: integers as int64, other
// numbers as float64. Integers that fit neither stay json.Number.
func asJSON(v any) (any, error) { return jsonvalue.Of(v) }
