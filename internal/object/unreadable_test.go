package object

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnreadableObjectsAreIdentified(t *testing.T) {
	t.Parallel()
	nested := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
	want := Identity{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "a", UID: "u1", ResourceVersion: "42", Deleting: true}
	const metadata = `"metadata":{"annotations":{"x":"}"},"name":"a","namespace":"ns","uid":"u1","resourceVersion":"42","deletionTimestamp":"2026-01-01T00:00:00Z"}`
	for name, json := range map[string]string{
		"deep spec":     `{"apiVersion":"v1","kind":"Pod",` + metadata + `,"spec":` + nested(9_994) + `}`,
		"deeper spec":   `{"spec":` + nested(100_000) + `,"apiVersion":"v1","kind":"Pod",` + metadata + `}`,
		"wide":          `{"apiVersion":"v1","kind":"Pod",` + metadata + `,"spec":[` + strings.Repeat("{},", 300_000) + `{}]}`,
		"cut":           `{"apiVersion":"v1","kind":"Pod",` + metadata + `,"spec":{"a`,
		"damaged":       `{"apiVersion":"v1","kind":"Pod",` + metadata + `,"spec":{"a":tru}}`,
		"wrong bracket": `{"apiVersion":"v1","kind":"Pod",` + metadata + `,"spec":[}`,
	} {
		b, err := Parse([]byte(json))
		var unreadable *UnreadableError
		if !errors.As(err, &unreadable) {
			t.Errorf("%s: %v, error %v", name, b, err)
			continue
		}
		if diff := cmp.Diff(want, unreadable.Identity); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		stub := unreadable.Stub()
		if stub.Key() != "u1" || stub.Name != "a" || stub.Namespace != "ns" || stub.ResourceVersion != "42" || len(stub.Map()) != 3 {
			t.Errorf("%s: the stub is %s", name, stub.Raw())
		}
	}
	if b, err := Parse([]byte(`{"metadata":{"name":"a"},"spec":` + nested(990) + `}`)); err != nil || b.Map()["spec"] == nil {
		t.Errorf("nested 990 levels: %v", err)
	}
}
