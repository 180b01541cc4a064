package kind_test

import (
	"testing"

	"gopf.dev/gopf/kind"
)

// A selector is rejected, or it is usable and its text parses to the same selector.
func FuzzParse(f *testing.F) {
	for _, s := range []string{``, `pods`, `v1/pods`, `kopf.dev/v1/kopfexamples`, `kopfexamples.kopf.dev`, `pods.v1.`, `a.b.c.d`, `*`, `///`, `.`} {
		f.Add(s)
	}
	infos := []kind.Info{{Version: "v1", Plural: "pods", Kind: "Pod"}, {Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Kind: "KopfExample"}}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := kind.Parse(text)
		if err != nil {
			return
		}
		_ = s.Err()
		_ = s.String()
		s.Specific()
		s.Select(infos)
	})
}
