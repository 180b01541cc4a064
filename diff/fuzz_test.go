package diff_test

import (
	"encoding/json"
	"testing"

	"gopf.dev/gopf/diff"
)

// A diff is empty for equal values, contains only differences, and is the reverse of the
// diff in the other direction.
func FuzzOf(f *testing.F) {
	for _, s := range [][2]string{
		{`null`, `{}`}, {`{"a":1}`, `{"a":1.0}`}, {`{"a":null}`, `{}`}, {`{"a":{"b":[1]}}`, `{"a":{"b":[2],"c":null},"d":{}}`}, {`[1]`, `{"a":1}`}, {`{"":{"":0}}`, `{"":{"":""}}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var old, now any
		if json.Unmarshal(a, &old) != nil || json.Unmarshal(b, &now) != nil {
			return
		}
		there, back := diff.Of(old, now), diff.Of(now, old)
		if len(there) != len(back) || len(diff.Left(old, now)) > len(there) || len(diff.Of(old, old)) > 0 {
			t.Fatalf("there %s, back %s", there, back)
		}
		if diff.Equal(old, now) && len(there) > 0 {
			t.Fatalf("equal values differ: %s", there)
		}
		for _, item := range there {
			if diff.Equal(item.Old, item.New) {
				t.Fatalf("no difference: %s", item)
			}
			if at := there.At(item.Path...); len(at) == 0 {
				t.Fatalf("nothing at %q in %s", item.Path, there)
			}
		}
	})
}
