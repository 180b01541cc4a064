package gopf

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
)

// Matcher is a condition for the value of a label, an annotation or a field. Labels and
// annotations are strings; fields are decoded JSON, with integers as int64 and other
// numbers as float64. The zero Matcher is invalid.
type Matcher struct {
	match handler.Matcher
	text  string // for explanations

	// The condition as a label selector for the API server. "" means none.
	operator metav1.LabelSelectorOperator
	value    string
}

// Matchers that do not look at the value.
var (
	Any     = Matcher{match: handler.Any, text: "any value"}                                               // any value, or none
	Present = Matcher{match: handler.Present, text: "any value", operator: metav1.LabelSelectorOpExists}   // any value
	Absent  = Matcher{match: handler.Absent, text: "absent", operator: metav1.LabelSelectorOpDoesNotExist} // no value
)

// Is matches values that equal the given one as JSON. Is(3) matches the number, not the
// text "3". A value that JSON cannot encode matches nothing.
func Is(value any) Matcher {
	wanted, err := asJSON(value)
	if err != nil {
		return Matcher{match: func(any, bool) bool { return false }}
	}
	m := Matcher{match: handler.Equal(wanted), text: jsonText(wanted)}
	if text, ok := wanted.(string); ok {
		m.operator, m.value = metav1.LabelSelectorOpIn, text
	}
	return m
}

// Matching matches values for which fn returns true. present is false if there is no
// value. fn must be quick and must not modify the value.
func Matching(fn func(value any, present bool) bool) Matcher {
	return Matcher{match: fn, text: "a value that the function at " + placeOf(fn) + " accepts"}
}

// problem describes an invalid matcher. A valid one yields "".
func (m Matcher) problem() string {
	if m.match == nil {
		return "a filter has no condition; use Is, Present, Absent, Matching or a combination of them"
	}
	return ""
}

// Not matches values that m does not match, including absent ones.
func Not(m Matcher) Matcher {
	return Matcher{match: func(v any, present bool) bool { return !m.match(v, present) }, text: "not " + m.text}
}

// AllOf matches values that all of the matchers match.
func AllOf(ms ...Matcher) Matcher {
	return Matcher{text: combined(ms, " and "), match: func(v any, present bool) bool {
		for _, m := range ms {
			if !m.match(v, present) {
				return false
			}
		}
		return true
	}}
}

// AnyOf matches values that at least one of the matchers matches.
func AnyOf(ms ...Matcher) Matcher {
	return Matcher{text: combined(ms, " or "), match: func(v any, present bool) bool {
		for _, m := range ms {
			if m.match(v, present) {
				return true
			}
		}
		return false
	}}
}

// combined returns the text of a combination of matchers.
func combined(ms []Matcher, word string) string {
	texts := make([]string, len(ms))
	for i, m := range ms {
		texts[i] = m.text
	}
	return "(" + strings.Join(texts, word) + ")"
}

// jsonText returns a decoded JSON value as text.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "a value that JSON cannot encode"
	}
	return string(text)
}

// placeOf returns the file and line of a function, without folders. fn may be nil.
func placeOf(fn any) string {
	v := reflect.ValueOf(fn)
	if v.Kind() != reflect.Func || v.IsNil() {
		return "?"
	}
	f := runtime.FuncForPC(v.Pointer())
	if f == nil {
		return "?"
	}
	file, line := f.FileLine(v.Pointer())
	return filepath.Base(file) + ":" + strconv.Itoa(line)
}

// asJSON converts a Go value to decoded JSON: integers are int64, other numbers
// float64. Integers that fit neither stay json.Number.
func asJSON(v any) (any, error) { return jsonvalue.Of(v) }
