package diff

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Equal reports whether two JSON values are equal. Numbers are compared by value, whatever
// their Go types: 1, 1.0 and json.Number("1") are equal. Integers of any length are compared
// exactly. A float64 beyond 2^53 counts as the integer that Go writes for it. A key with a
// null differs from an absent key, in contrast to [Of].
func Equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		b, ok := b.(string)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && equalMaps(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && equalLists(a, b)
	}
	if x, ok := numberOf(a); ok {
		y, ok := numberOf(b)
		return ok && x == y
	}
	// Other types do not come from JSON. The result must be correct, even if it is slow.
	return reflect.DeepEqual(a, b)
}

func equalMaps(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() { //mutate:skip it is only faster
		return true // the same map, as for objects that did not change while they were handled
	}
	for key, value := range a {
		other, ok := b[key]
		if !ok || !Equal(value, other) {
			return false
		}
	}
	return true
}

func equalLists(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// number is the exact value of a number, in a form that is comparable by ==: an integer, a
// fraction, or the digits of an integer of more than 64 bits.
type number struct {
	integer  int64
	fraction float64
	digits   string
}

func numberOf(v any) (number, bool) {
	switch v := v.(type) {
	case int64:
		return number{integer: v}, true
	case float64:
		return ofFloat(v), true
	case json.Number:
		return ofText(v), true
	case int:
		return number{integer: int64(v)}, true
	case int32:
		return number{integer: int64(v)}, true
	case int16:
		return number{integer: int64(v)}, true
	case int8:
		return number{integer: int64(v)}, true
	case uint64:
		return ofUnsigned(v), true
	case uint:
		return ofUnsigned(uint64(v)), true
	case uint32:
		return number{integer: int64(v)}, true
	case uint16:
		return number{integer: int64(v)}, true
	case uint8:
		return number{integer: int64(v)}, true
	case float32:
		return ofText(json.Number(strconv.FormatFloat(float64(v), 'g', -1, 32))), true
	}
	return number{}, false
}

func ofUnsigned(v uint64) number {
	if v > math.MaxInt64 {
		return number{digits: strconv.FormatUint(v, 10)}
	}
	return number{integer: int64(v)}
}

func ofFloat(v float64) number {
	switch {
	case v != math.Trunc(v): // including NaN, which equals nothing
		return number{fraction: v}
	case v > -1<<53 && v < 1<<53: //mutate:skip the way below gives the same integers
		return number{integer: int64(v)}
	}
	// JSON contains the shortest digits for this float, and zeros.
	return ofDigits(strconv.FormatFloat(v, 'f', -1, 64))
}

// ofDigits parses an integer of any length.
func ofDigits(text string) number {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return number{integer: n}
	}
	return number{digits: text}
}

func ofText(v json.Number) number {
	text := v.String()
	if !strings.ContainsAny(text, ".eE") {
		return ofDigits(text) // a float would lose digits of a long integer
	}
	n, err := v.Float64()
	if err != nil {
		return number{digits: text}
	}
	return ofFloat(n)
}
