package diff_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
)

func TestNumbersAreComparedByValue(t *testing.T) {
	t.Parallel()
	same := [][]any{
		{1, int8(1), int16(1), int32(1), int64(1), uint(1), uint8(1), uint16(1), uint32(1), uint64(1), float32(1), 1.0,
			json.Number("1"), json.Number("1.0"), json.Number("1e0"), json.Number("10E-1")},
		{0, math.Copysign(0, -1), json.Number("-0"), json.Number("0.0")},
		{1.5, float32(1.5), json.Number("1.5"), json.Number("15e-1")},
		{int64(math.MinInt64), json.Number("-9223372036854775808")},
		{float64(math.MinInt64), json.Number("-9223372036854776000")}, // so it is written, and so the server keeps it
		{1234567890123456768.0, int64(1234567890123456800)},           // likewise
		{float64(math.MaxUint64), json.Number("18446744073709552000")},
		{0.1, float32(0.1), json.Number("0.1")},
		{1e300, json.Number("1" + strings.Repeat("0", 300))},
		{int64(math.MaxInt64), json.Number("9223372036854775807")},
		{uint64(math.MaxUint64), json.Number("18446744073709551615")},
		{1e20, json.Number("1e20"), json.Number("100000000000000000000")},
		{int64(1)<<53 + 1, json.Number("9007199254740993")}, // no float is equal to it
		{json.Number("1e999")},
		{json.Number("123456789012345678901234567890")},
		{json.Number("123456789012345678901234567891")},
	}
	for i, group := range same {
		for j, other := range same {
			for _, a := range group {
				for _, b := range other {
					if got, want := diff.Equal(a, b), i == j; got != want {
						t.Errorf("Equal(%T %v, %T %v): got %v, want %v", a, a, b, b, got, want)
					}
				}
			}
		}
	}
}

func TestValuesOfDifferentTypesAreNotEqual(t *testing.T) {
	t.Parallel()
	values := []any{
		nil, true, false, 1, 0, "", "1", "true", []any{}, []any{nil}, []any{1}, []any{1, 2}, []any{2, 1},
		map[string]any{}, map[string]any{"a": nil}, map[string]any{"b": nil}, map[string]any{"a": 1}, map[string]any{"a": 1, "b": 1},
	}
	for i, a := range values {
		for j, b := range values {
			if got, want := diff.Equal(a, b), i == j; got != want {
				t.Errorf("Equal(%#v, %#v): got %v, want %v", a, b, got, want)
			}
		}
	}
}

func TestOtherGoTypesAreCompared(t *testing.T) {
	t.Parallel()
	if !diff.Equal(map[string]string{"a": "b"}, map[string]string{"a": "b"}) {
		t.Error("equal maps of strings differ")
	}
	if diff.Equal([]string{"a"}, []string{"b"}) {
		t.Error("different lists of strings are equal")
	}
	if diff.Equal([]string{"a"}, nil) || diff.Equal(nil, []string{"a"}) {
		t.Error("a list is equal to nothing")
	}
}
