package children

import (
	"encoding/json"
	"hash/fnv"
	"testing"
)

// FuzzDigestsAreThoseOfPackageJSON protects stored digests: if they changed, an upgrade
// would apply all children again.
func FuzzDigestsAreThoseOfPackageJSON(f *testing.F) {
	for _, text := range []string{"", "plain", "<a> & b", "\u2028\u2029", "\xff", "\ufffd", "\x00\b\f\n\r\t\x1f\x7f", "\"\\/", "ä€😀", "\xe2\x80"} {
		f.Add(text, text, 1.5, int64(-1))
	}
	f.Add("k", "v", 1e21, int64(1)<<62)
	f.Add("k", "v", 1e-7, int64(0))
	f.Fuzz(func(t *testing.T, key, text string, number float64, integer int64) {
		fields := map[string]any{
			key: text, "number": number, "integer": integer, "null": nil, "yes": true, "none": []any(nil), "list": []any{text, map[string]any{key: number}},
			"strings": map[string]string{key: text}, "empty": map[string]any{},
		}
		raw, err := json.Marshal(fields)
		got, failure := Digest(fields)
		if (err == nil) != (failure == nil) {
			t.Fatalf("got the error %v, want %v", failure, err)
		}
		h := fnv.New32a()
		_, _ = h.Write(raw)
		if err == nil && got != h.Sum32() {
			t.Errorf("%s has another digest than in package json", raw)
		}
	})
}
