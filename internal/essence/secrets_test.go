package essence

import (
	"math"
	"strings"
	"testing"
)

func TestSecretsAreHiddenByKey(t *testing.T) {
	secret := func() map[string]any {
		return map[string]any{
			"data":       map[string]any{"a": "eA==", "b": "eA==", "known": "hmac-sha256:0123", "n": int64(1)},
			"stringData": map[string]any{"c": "plain"},
			"metadata":   map[string]any{"labels": map[string]any{"l": "shown"}},
		}
	}
	hidden, again, other := secret(), secret(), secret()
	HideSecrets(hidden, "uid-1")
	HideSecrets(again, "uid-1")
	HideSecrets(other, "uid-2")
	value := func(of map[string]any, field, key string) string { return of[field].(map[string]any)[key].(string) }
	for _, at := range [][2]string{{"data", "a"}, {"data", "b"}, {"data", "n"}, {"stringData", "c"}} {
		got := value(hidden, at[0], at[1])
		if !strings.HasPrefix(got, "hmac-sha256:") || len(got) != len("hmac-sha256:")+32 {
			t.Errorf("%v is shown as %q", at, got)
		}
		if got != value(again, at[0], at[1]) || got == value(other, at[0], at[1]) {
			t.Errorf("%v: the digest %q does not depend on the object alone", at, got)
		}
	}
	if value(hidden, "data", "a") != value(hidden, "data", "b") || value(hidden, "data", "a") == value(hidden, "stringData", "c") {
		t.Error("digests do not tell equal values from different ones")
	}
	if got := value(hidden, "data", "known"); got != "hmac-sha256:0123" {
		t.Errorf("a digest was digested to %q", got)
	}
	if got := hidden["metadata"].(map[string]any)["labels"].(map[string]any)["l"]; got != "shown" {
		t.Errorf("a label was hidden: %v", got)
	}
}

func TestADigestTellsWhetherAnEssenceIsTheSame(t *testing.T) {
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
		t.Errorf("what JSON cannot hold: got %v", got)
	}
}

func TestTextsAreComparedAsJSON(t *testing.T) {
	cases := []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[1,2]}`, `{"b":[1,2],"a":1}`, true},
		{`{"a":"b"}`, `{"a":"\u0062"}`, true},
		{`{"a":1}`, `{"a":2}`, false},
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
		t.Errorf("the stored text was changed to %s", kept)
	}
}
