package children_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"gopf.dev/gopf/internal/children"
)

func entries(t *testing.T, text string) (all []children.FieldEntry) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTakeOver(t *testing.T) {
	t.Parallel()
	const reference = `"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}}`
	for name, test := range map[string]struct{ before, after string }{
		"a former manager of the child": {
			`[{"manager":"old","operation":"Update","apiVersion":"v1","time":"T","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}},` + reference + `}}]`,
			`[{"manager":"me","operation":"Apply","apiVersion":"v1","time":"T","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}},` + reference + `}}]`,
		},
		"writes of the operator without server-side apply, joined with its applies": {
			`[{"manager":"me","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{".":{},"f:a":{}}}},
			  {"manager":"me","operation":"Apply","apiVersion":"v1","time":"T","fieldsV1":{"f:data":{"f:b":{}}}}]`,
			`[{"manager":"me","operation":"Apply","apiVersion":"v1","time":"T","fieldsV1":{"f:data":{".":{},"f:a":{},"f:b":{}}}}]`,
		},
		"another client stays": {
			`[{"manager":"kubectl-edit","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{"f:a":{}}}}]`, "",
		},
		"the child of another owner": {
			`[{"manager":"old","operation":"Update","apiVersion":"v1","fieldsV1":{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"other\"}":{}}}}}]`, "",
		},
		"another version of the API": {
			`[{"manager":"old","operation":"Update","apiVersion":"v1beta1","fieldsV1":{` + reference + `}}]`, "",
		},
		"the status": {
			`[{"manager":"old","operation":"Update","apiVersion":"v1","subresource":"status","fieldsV1":{` + reference + `}}]`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := entries(t, test.before)
			got, changed := children.TakeOver(before, "me", "v1", "u")
			want := before
			if test.after != "" {
				want = entries(t, test.after)
			}
			if changed != (test.after != "") || !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, %v", got, changed)
			}
		})
	}
}

func TestReleaseTakesOnlySharedFieldsFromClientsOfWholeManifests(t *testing.T) {
	t.Parallel()
	const ours = `{"manager":"me","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:data":{"f:a":{}}}}`
	for name, test := range map[string]struct{ before, after string }{
		"kubectl keeps the fields that are not declared": {
			`[` + ours + `,{"manager":"kubectl-client-side-apply","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{".":{},"f:a":{},"f:b":{}}}}]`,
			`[` + ours + `,{"manager":"kubectl-client-side-apply","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{".":{},"f:b":{}}}}]`,
		},
		"Helm has nothing left": {
			`[` + ours + `,{"manager":"helm","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:data":{"f:a":{}}}}]`, `[` + ours + `]`,
		},
		"an edit is kept": {`[` + ours + `,{"manager":"kubectl-edit","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{"f:a":{}}}}]`, ""},
		"nothing is shared": {
			`[` + ours + `,{"manager":"helm","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{".":{},"f:b":{}}}}]`, "",
		},
		"without an apply": {`[{"manager":"helm","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{}}}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := entries(t, test.before)
			got, changed := children.Release(before, "me")
			want := before
			if test.after != "" {
				want = entries(t, test.after)
			}
			if changed != (test.after != "") || !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, %v", got, changed)
			}
		})
	}
}

func TestContestedFieldsAreThoseOfTheOtherClientAlone(t *testing.T) {
	t.Parallel()
	var desired, theirs, ours map[string]any
	for text, to := range map[string]*map[string]any{
		`{"metadata":{"labels":{"a":"b"}},"spec":{"replicas":3,"ports":[{"port":80}],"name":"x","empty":{}}}`:                                     &desired,
		`{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:replicas":{},"f:ports":{"k:{\"port\":80}":{"f:name":{}}},"f:other":{},"f:empty":{}}}`: &theirs,
		`{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:name":{},"f:ports":{"k:{\"port\":80}":{"f:port":{}}},"f:empty":{}}}`:                  &ours,
	} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Fatal(err)
		}
	}
	if got := children.Contested(desired, theirs, ours); !slices.Equal(got, []string{"spec.ports", "spec.replicas"}) {
		t.Errorf("got %q", got)
	}
}
