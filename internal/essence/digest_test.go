package essence

import (
	"math"
	"testing"
)

func TestADigestMatchesOnlyItsEssence(t *testing.T) {
	one, two := map[string]any{"a": "1"}, map[string]any{"a": "2"}
	digest, err := Digest(one)
	if err != nil || !IsDigest(digest) || IsDigest(one) || IsDigest(map[string]any{digestKey: "x", "a": "1"}) {
		t.Fatalf("got %v, %v", digest, err)
	}
	if got := Undigest(digest, one); got["a"] != "1" {
		t.Errorf("the same: got %v", got)
	}
	if got := Undigest(digest, two); len(got) != 0 || got == nil {
		t.Errorf("another: got %v", got)
	}
	if got := Undigest(two, one); got["a"] != "2" {
		t.Errorf("no digest: got %v", got)
	}
	if got, err := Digest(map[string]any{"a": math.NaN()}); err == nil {
		t.Errorf("a value that is not JSON: got %v", got)
	}
}

func TestCanonicalComparesTextsAsJSON(t *testing.T) {
	cases := []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[1,2]}`, `{"b":[1,2],"a":1}`, true},
		{`{"a":"b"}`, `{"a":"\u0062"}`, true},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":12}`, `{"a":21}`, false},
		{`{"a":1,"b":"x y"}`, `{ "b": "x y", "a": 1 }`, true},
		{`{"a":"x y"}`, `{"a":"xy"}`, false},
		{`{"ü":"ö"}`, `{"ü":"\u00f6"}`, true},
		{`{"a":"\u002f"}`, `{"a":"\/"}`, true},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":1}`, `{"a":1`, false},
		{`{"a":1`, `{"a":1}`, false},
		{`{}`, ``, false},
		{``, `{}`, false},
		{`[1]`, ` [1]`, false},
		{`"a"`, `"\u0061"`, false},
	}
	for _, c := range cases {
		if got := canonical([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%s and %s: got %v", c.a, c.b, got)
		}
	}
	kept := []byte(`{"b":1,"a":2}`)
	if canonical([]byte(`{"a":2,"b":1}`), kept); string(kept) != `{"b":1,"a":2}` {
		t.Errorf("the stored text was modified: %s", kept)
	}
}
