package storage_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/storage"
)

func TestEssencesAreEncodedLikeInKopf(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		essence map[string]any
		want    string
	}{
		"empty": {essence: map[string]any{}, want: `{}`},
		"order of keys": {
			essence: map[string]any{
				"status": map[string]any{"b": 1, "a": 2}, "metadata": map[string]any{
					"annotations": map[string]any{"z": "1", "y": "2"}, "generation": 1, "labels": map[string]any{"a": "b"}},
				"spec": map[string]any{"metadata": map[string]any{"labels": 1, "annotations": 2}, "A": 1, "_": 2}, "data": nil, "webhooks": []any{},
			},
			want: `{"data":null,"spec":{"A":1,"_":2,"metadata":{"annotations":2,"labels":1}},"webhooks":[],` +
				`"metadata":{"labels":{"a":"b"},"annotations":{"y":"2","z":"1"},"generation":1},"status":{"a":2,"b":1}}`,
		},
		"metadata that is none": {essence: map[string]any{"metadata": "x", "a": 1}, want: `{"a":1,"metadata":"x"}`},
		"texts": {
			essence: map[string]any{"s": "<&>/'\"\\\b\f\n\r\t\x00\x1f\x7fé\u2028😀", "ключ": "\xff"},
			want:    `{"s":"<&>/'\"\\\b\f\n\r\t\u0000\u001f\u007f\u00e9\u2028\ud83d\ude00","\u043a\u043b\u044e\u0447":"\ufffd"}`,
		},
		"numbers from JSON": {
			essence: map[string]any{"n": []any{json.Number("1"), json.Number("1.0"), json.Number("1e16"), json.Number("0.00001"),
				json.Number("123456789012345678901234567890"), json.Number("-0.0"), json.Number("1e400")}},
			want: `{"n":[1,1.0,1e+16,1e-05,123456789012345678901234567890,-0.0,1e400]}`,
		},
		"numbers from Go": {
			essence: map[string]any{"n": []any{1, int64(-1), 1.0, 1.5, 1e16, 1e21, 1e-7, 0.0001, int32(3), uint8(4)}},
			want:    `{"n":[1,-1,1,1.5,10000000000000000,1e+21,1e-07,0.0001,3,4]}`,
		},
		"values from Go": {
			essence: map[string]any{"v": struct {
				B []string          `json:"b"`
				A map[string]string `json:"a"`
			}{B: []string{"<x>"}, A: map[string]string{"k": "é"}}},
			want: `{"v":{"a":{"k":"\u00e9"},"b":["<x>"]}}`,
		},
	}
	for name, tc := range cases {
		got, err := storage.EncodeEssence(tc.essence)
		if err != nil || got != tc.want {
			t.Errorf("%s: error %v\ngot  %s\nwant %s", name, err, got, tc.want)
		}
	}
}

func TestValuesThatAreNotJSONAreErrors(t *testing.T) {
	t.Parallel()
	for _, value := range []any{math.NaN(), math.Inf(1), func() {}, make(chan int), []any{math.NaN()}} {
		if got, err := storage.EncodeEssence(map[string]any{"spec": map[string]any{"x": value}}); err == nil {
			t.Errorf("%T: got %s, want an error", value, got)
		} else if !strings.HasPrefix(err.Error(), "spec: x: ") {
			t.Errorf("%T: the error does not name the path: %v", value, err)
		}
	}
}

func TestDecodedEssencesKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	got, found, err := storage.DecodeEssence("\n " + `{"i": 9007199254740993, "f": 1.5, "e": 1e3, "b": 123456789012345678901234567890, "l": [1, {"x": -1}], "n": null}` + " \n")
	if err != nil || !found {
		t.Fatalf("found %v, error %v", found, err)
	}
	want := map[string]any{
		"i": int64(9007199254740993), "f": 1.5, "e": 1000.0, "b": json.Number("123456789012345678901234567890"),
		"l": []any{int64(1), map[string]any{"x": int64(-1)}}, "n": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestOnlyObjectsAreEssences(t *testing.T) {
	t.Parallel()
	if _, found, err := storage.DecodeEssence("null\n"); found || err != nil {
		t.Errorf("null: found %v, error %v", found, err)
	}
	for _, text := range []string{"", "oops", "[]", `"text"`, "1", "{} {}", "{}x", `{"a":1`} {
		if _, found, err := storage.DecodeEssence(text); found || err == nil {
			t.Errorf("%q: found %v, error %v", text, found, err)
		}
	}
}

func FuzzEssencesAreReadAsWritten(f *testing.F) {
	f.Add(`{"spec": {"a": [1, 1.5, 1e300, null, true, "é😀<>"]}, "metadata": {"labels": {"x": "y"}}}`)
	f.Add(`{"": "\u0000\u007f\ud800", "status": -0.0}`)
	f.Fuzz(func(t *testing.T, text string) {
		read, found, err := storage.DecodeEssence(text)
		if err != nil || !found {
			t.Skip()
		}
		written, err := storage.EncodeEssence(read)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []byte(written) {
			if b < ' ' || b > '~' {
				t.Fatalf("%q is not printable ASCII", written)
			}
		}
		again, found, err := storage.DecodeEssence(written)
		if err != nil || !found || !diff.Equal(read, again) {
			t.Errorf("%s: found %v, error %v: %s", written, found, err, diff.Of(read, again))
		}
	})
}
