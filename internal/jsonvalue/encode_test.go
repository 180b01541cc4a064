package jsonvalue

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestEncodedValuesAreThoseOfPackageJSON(t *testing.T) {
	for _, v := range []any{
		nil, true, false, "", "a\"b\\c\n\t\x01<>&\u2028é😀", "\xff", int64(math.MinInt64), int64(math.MaxInt64), 1.5, 1e300, json.Number("123456789012345678901234567890"),
		map[string]any{}, map[string]any(nil), []any{}, []any(nil), []any{nil, int64(1), "x", []any{}},
		map[string]any{"b": int64(2), "a": map[string]any{"\"": nil, "c": []any{1.0}}, "": "", "c": "", "d": "", "e": "", "f": "", "g": "", "h": "", "i": ""},
		map[string]string{"a": "b"}, []string{"x"}, 5, time.Unix(0, 0).UTC(), struct{ A int }{1}, strings.Repeat("x", 2*maxKept),
	} {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if err := json.Unmarshal(want, &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &b); err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("got %s, want %s; %v", got, want, err)
		}
	}
}

func TestKeysAreEncodedInOrder(t *testing.T) {
	got, err := Encode(map[string]any{"c": map[string]any{"z": int64(1), "y": nil}, "a": "x", "b": []any{true}})
	if want := `{"a":"x","b":[true],"c":{"y":null,"z":1}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestValuesWithoutJSONAreErrors(t *testing.T) {
	for _, v := range []any{math.NaN(), make(chan int), json.Number("x"), map[string]any{"a": []any{math.Inf(1)}}} {
		if got, err := Encode(v); err == nil {
			t.Errorf("%v: got %s", v, got)
		}
	}
}

func TestEncodedTextsAreIndependent(t *testing.T) {
	first, _ := Encode("first")
	second, _ := Encode("other")
	if string(first) != `"first"` || string(second) != `"other"` {
		t.Errorf("got %s and %s", first, second)
	}
}

func BenchmarkEncode(b *testing.B) {
	base := strings.Repeat(`{"name":"entry","value":"volume1 claim2 namespace3 replica4 image5 port6 secret7"},`, 10)
	patch := map[string]any{"metadata": map[string]any{"resourceVersion": "1"}, "status": map[string]any{
		"create": map[string]any{"message": "created", "size": int64(1)}, "things": map[string]any{"last-handled-configuration": base}}}
	for name, encode := range map[string]func(any) ([]byte, error){"own": Encode, "json": json.Marshal} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := encode(patch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
