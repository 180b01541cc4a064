package essence_test

import (
	"testing"

	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/object"
)

func TestSameComparesOnlyTheFieldsOfTheEssence(t *testing.T) {
	t.Parallel()
	const first = `{"apiVersion":"v1","kind":"X","metadata":{"name":"n","resourceVersion":"1","labels":{"a":"b"},"annotations":{"c":"d"},"ownerReferences":[{"kind":"Y"}]},"spec":{"a":[1]},"data":{"k":"v"}}`
	cases := map[string]struct {
		other string
		want  bool
	}{
		"the same":              {first, true},
		"a later version":       {`{"apiVersion":"v1","kind":"X","metadata":{"name":"n","resourceVersion":"2","generation":7,"finalizers":["f"],"labels":{"a":"b"},"annotations":{"c":"d"},"ownerReferences":[{"kind":"Y"}]},"spec":{"a":[1]},"data":{"k":"v"},"status":{"x":1}}`, true},
		"another spec":          {`{"apiVersion":"v1","kind":"X","metadata":{"name":"n","labels":{"a":"b"},"annotations":{"c":"d"},"ownerReferences":[{"kind":"Y"}]},"spec":{"a":[2]},"data":{"k":"v"}}`, false},
		"another member":        {`{"apiVersion":"v1","kind":"X","metadata":{"name":"n","labels":{"a":"b"},"annotations":{"c":"d"},"ownerReferences":[{"kind":"Y"}]},"spec":{"a":[1]},"date":{"k":"v"}}`, false},
		"a member less":         {`{"apiVersion":"v1","kind":"X","metadata":{"name":"n","labels":{"a":"b"},"annotations":{"c":"d"},"ownerReferences":[{"kind":"Y"}]},"spec":{"a":[1]}}`, false},
		"another label":         {`{"apiVersion":"v1","kind":"X","metadata":{"name":"n","labels":{"a":"c"},"annotations":{"c":"d"},"ownerReferences":[{"kind":"Y"}]},"spec":{"a":[1]},"data":{"k":"v"}}`, false},
		"another annotation":    {`{"apiVersion":"v1","kind":"X","metadata":{"name":"n","labels":{"a":"b"},"annotations":{"c":"e"},"ownerReferences":[{"kind":"Y"}]},"spec":{"a":[1]},"data":{"k":"v"}}`, false},
		"another owner":         {`{"apiVersion":"v1","kind":"X","metadata":{"name":"n","labels":{"a":"b"},"annotations":{"c":"d"},"ownerReferences":[{"kind":"Z"}]},"spec":{"a":[1]},"data":{"k":"v"}}`, false},
		"no metadata":           {`{"apiVersion":"v1","kind":"X","spec":{"a":[1]},"data":{"k":"v"}}`, false},
		"metadata that is null": {`{"apiVersion":"v1","kind":"X","metadata":null,"spec":{"a":[1]},"data":{"k":"v"}}`, false},
		"another order":         {`{"apiVersion":"v1","kind":"X","data":{"k":"v"},"metadata":{"name":"n","labels":{"a":"b"},"annotations":{"c":"d"},"ownerReferences":[{"kind":"Y"}]},"spec":{"a":[1]}}`, false},
	}
	parsed := func(text string) *object.Body {
		b, err := object.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return b
	}
	const outside, inside = `{"kind":"X","annotations":{"c":"d"},"metadata":{"name":"n"}}`, `{"kind":"X","metadata":{"name":"n","annotations":{"c":"d"}}}`
	if essence.Same(parsed(outside), parsed(inside)) {
		t.Error("a member of the object is taken for the annotations in the metadata")
	}
	for name, tc := range cases {
		if got := essence.Same(parsed(first), parsed(tc.other)); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
