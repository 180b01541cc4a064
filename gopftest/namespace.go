package gopftest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Namespace creates a namespace with a unique name for one test and returns the name. On a
// real cluster, tests that run at the same time, and objects that other tests left, do not
// disturb each other in this way. Run the operator with [gopf.dev/gopf.Namespaces] of it. The
// namespace is deleted when the test ends.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, t.Name())
	const longest = 50 // the suffix must fit into 63 characters
	if len(name) > longest {
		name = name[len(name)-longest:]
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetGenerateName("t-" + strings.Trim(name, "-") + "-")
	return c.Create(t, u).GetName()
}
