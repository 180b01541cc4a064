package admission

import (
	"strings"
	"testing"

	"gopf.dev/gopf/internal/handler"
)

// With the failure policy Ignore, the API server allows requests if the webhook fails. A
// client must not be able to evade the handlers by an object that they cannot get.
func TestObjectsThatCannotBeReviewedAreDenied(t *testing.T) {
	v := newTestReviewer(validating("v", "kopfexamples", handler.Admission{}))
	v.MaxBody = 1 << 20
	review := func(operation, object, old string) string {
		return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","kind":{"group":"kopf.dev","version":"v1","kind":"KopfExample"},` +
			`"resource":{"group":"kopf.dev","version":"v1","resource":"kopfexamples"},"name":"x","namespace":"n","operation":"` + operation + `",` +
			`"userInfo":{"username":"u"},"object":` + object + `,"oldObject":` + old + `}}`
	}
	nested := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
	const allowed = -1
	held := func(finalizers, spec string) string {
		return `{"metadata":{"finalizers":` + finalizers + `,"managedFields":[{"fieldsV1":` + finalizers + `}],"name":"x","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":` + spec + `}`
	}
	fine, deleting := `{"metadata":{"name":"x"}}`, `{"metadata":{"name":"x","deletionTimestamp":"2026-01-01T00:00:00Z"}}`
	for name, c := range map[string]struct {
		operation, object, old string
		want                   int // of the response; 0 means a denial, allowed that it is allowed
	}{
		"deep":                     {"CREATE", nested(2_000), "null", 0},
		"too deep for the decoder": {"CREATE", nested(9_999), "null", 0},
		"wide":                     {"UPDATE", "[" + strings.Repeat("1,", 300_000) + "1]", fine, 0},
		"long":                     {"CREATE", `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, "null", 0},
		"damaged and repaired":     {"UPDATE", fine, nested(2_000), 0},
		"deleted":                  {"DELETE", "null", nested(2_000), 400},
		"long and deleted":         {"DELETE", "null", `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, 413},
		"being deleted":            {"UPDATE", nested(2_000), deleting, 0},
		"damaged while deleted":    {"UPDATE", held(`["a"]`, `{"evil":true}`), held(`["a"]`, nested(2_000)), 0},
		"changed and released":     {"UPDATE", held(`["a"]`, nested(2_001)), held(`["a","b"]`, nested(2_000)), 0},
		"replaced and released":    {"UPDATE", held(`["c"]`, nested(2_000)), held(`["a","b"]`, nested(2_000)), 0},
		"labelled and released":    {"UPDATE", strings.Replace(held(`["a"]`, nested(2_000)), `"name"`, `"labels":{"a":"b"},"name"`, 1), held(`["a","b"]`, nested(2_000)), 0},
		"odd finalizers":           {"UPDATE", held(`[{"a":1}]`, nested(2_000)), held(`[{"a":1},{}]`, nested(2_000)), 0},
		"released too early":       {"UPDATE", strings.Replace(held(`["a"]`, nested(2_000)), "deletionTimestamp", "x", 1), strings.Replace(held(`["a","b"]`, nested(2_000)), "deletionTimestamp", "x", 1), 0},
		"released":                 {"UPDATE", held(`["b"]`, nested(2_000)), held(`["a","b"]`, nested(2_000)), allowed},
		"released at last":         {"UPDATE", strings.Replace(held(`[]`, nested(2_000)), `"finalizers":[],`, "", 1), held(`["a"]`, nested(2_000)), allowed},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := ask(t, v, "/v", review(c.operation, c.object, c.old))
			verdict := code
			switch {
			case code == 200 && strings.Contains(body, `"uid":"1","allowed":false`):
				verdict = 0
			case code == 200 && strings.Contains(body, `"uid":"1","allowed":true`):
				verdict = allowed
			}
			if verdict != c.want {
				t.Errorf("got %d %.300s, want %d", code, body, c.want)
			}
		})
	}
}
