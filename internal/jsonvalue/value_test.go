package jsonvalue

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
)

// The Kubernetes library is the reference for decoding.
func TestValuesAreDecodedAsKubernetesDoes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{}`, `[]`, `null`, `true`, `false`, `""`, `"a\u00e4\n\"\\/\ud83d\ude00"`, ` { "a" : [ 1 , { } , [ ] , null ] } `,
		`0`, `-0`, `1`, `-1`, `1.0`, `1e3`, `1E-3`, `-1.5`, `9223372036854775807`, `-9223372036854775808`,
		`9223372036854776000`, `18446744073709552000`, `-100000000000000000000`, `1e+21`, `1.2345678901234568e+29`,
		`{"a":1,"a":2}`, `{"":{"\u0061":1}}`, `{"` + strings.Repeat("long", 20) + `":1}`,
		`{"metadata":{"labels":{"app":"x"}},"spec":{"list":[{"name":"a","value":1},{"name":"b","value":2.5}]}}`,
	} {
		var want any
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time with cached names
			got, err := Decode([]byte(text))
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s: %v, -want +got\n%s", text, err, diff)
			}
		}
	}
	for _, text := range []string{``, `{`, `{"a"}`, `[1,]`, `nul`, `"a`} {
		if got, err := Decode([]byte(text)); err == nil {
			t.Errorf("%s is decoded as %v", text, got)
		}
	}
}

func TestANumberBeyondFloat64HidesNoOtherValues(t *testing.T) {
	t.Parallel()
	got, err := Decode([]byte(`{"a":[1e999,-1e999],"b":1}`))
	want := map[string]any{"a": []any{json.Number("1e999"), json.Number("-1e999")}, "b": int64(1)}
	if diff := cmp.Diff(any(want), got); err != nil || diff != "" {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
}

func TestCachedTextsAreRead(t *testing.T) {
	r := Read([]byte(`["Thing","Thing","a\u0062","",7,null,{"a":[1]},"last"]`))
	defer r.Close()
	if _, err := r.ReadToken(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Thing", "Thing", "ab", "", "-", "-", "-", "last"} {
		got, ok, err := r.Cached()
		if !ok {
			got = "-"
		}
		if err != nil || got != want {
			t.Errorf("got %q and %v, want %q", got, err, want)
		}
	}
}
