package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlansCompareOnlyTheFieldsThatMatter(t *testing.T) {
	const digest, trace = `"gopf.dev/applied":"1"`, `"opentelemetry.io/traceparent":"00-1"`
	for name, c := range map[string]struct{ object, want string }{
		"without metadata of the server": {
			`{"metadata":{"name":"x","uid":"1","resourceVersion":"2","generation":3,"creationTimestamp":"t","managedFields":[],"selfLink":"/"},"data":{"a":"b"}}`,
			`{"metadata":{"name":"x"},"data":{"a":"b"}}`,
		},
		"without the digest and the trace of the last apply": {
			`{"metadata":{"name":"x","annotations":{` + digest + `,` + trace + `,"own":"1"}}}`,
			`{"metadata":{"name":"x","annotations":{"own":"1"}}}`,
		},
		"without annotations that are empty then": {
			`{"metadata":{"name":"x","annotations":{` + digest + `,` + trace + `}}}`,
			`{"metadata":{"name":"x"}}`,
		},
	} {
		given := fields(t, c.object)
		if d := cmp.Diff(fields(t, c.want), essential(given)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(fields(t, c.object), given); d != "" {
			t.Errorf("%s: the object was changed: %s", name, d)
		}
	}
}
