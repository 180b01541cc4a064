package jsonvalue_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/jsonvalue"
)

func TestObjectAcceptsOnlyOneObject(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 40)
	for text, want := range map[string]map[string]any{
		`null`:                         nil,
		` {"a": [1, {"b": null}]} `:    {"a": []any{int64(1), map[string]any{"b": nil}}},
		`{"": true, "` + long + `":2}`: {"": true, long: int64(2)},
		`{"a\u0062\"": "\u0063"}`:      {`ab"`: "c"},
		`{"a":1e999}`:                  {"a": json.Number("1e999")}, // this number must not hide the other fields
	} {
		if got, err := jsonvalue.Object([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{``, `[]`, `1`, `"a"`, `{} {}`, `{`, `{"a"`, `{"a":`, `{"a":}`, `{"a":[1,}`, `{"a":[1`, `{"a":-}`, `{1:2}`, `[`} {
		if got, err := jsonvalue.Object([]byte(text)); err == nil {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func TestCachedFieldNamesAreNotConfused(t *testing.T) {
	t.Parallel()
	r := jsonvalue.Read([]byte(`{"abc":1,"adc":2,"x":3}{"acb":4,"abc":5}`))
	defer r.Close()
	for _, want := range []map[string]any{{"abc": int64(1), "adc": int64(2), "x": int64(3)}, {"acb": int64(4), "abc": int64(5)}} {
		if got, err := r.Value(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
}

func TestOfDecodesTheEncodedValue(t *testing.T) {
	t.Parallel()
	type value struct {
		N uint64 `json:"n"`
		S string `json:"s,omitempty"`
	}
	got, err := jsonvalue.Of(value{N: 1<<63 + 1})
	if err != nil || len(got.(map[string]any)) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := jsonvalue.Of(func() {}); err == nil || got != nil {
		t.Errorf("of a function: got %v, %v", got, err)
	}
}

func TestNegativeIntegersOf22DigitsKeepAllDigits(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"-1000000000000000000000", "-999999999999999999999", "999999999999999999999", "1000000000000000000000"} {
		if got, err := jsonvalue.Number(text); err != nil || got != json.Number(text) {
			t.Errorf("%s: got %T %v, %v", text, got, got, err)
		}
	}
}
