package jsonvalue_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/jsonvalue"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestLookupDistinguishesNullFromAbsent(t *testing.T) {
	t.Parallel()
	root := object(t, `{"spec": {"size": "1G", "none": null, "list": [{"a": 1}]}}`)
	cases := map[string]struct {
		path  jsonvalue.Path
		want  any
		found bool
	}{
		"value":              {path: jsonvalue.Path{"spec", "size"}, want: "1G", found: true},
		"null is present":    {path: jsonvalue.Path{"spec", "none"}, want: nil, found: true},
		"below null":         {path: jsonvalue.Path{"spec", "none", "x"}},
		"below a string":     {path: jsonvalue.Path{"spec", "size", "x"}},
		"lists have no keys": {path: jsonvalue.Path{"spec", "list", "0"}},
		"absent":             {path: jsonvalue.Path{"status"}},
		"root":               {path: nil, want: root, found: true},
	}
	for name, tc := range cases {
		got, found := jsonvalue.Lookup(root, tc.path...)
		if found != tc.found {
			t.Errorf("%s: found %v, want %v", name, found, tc.found)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
	if _, found := jsonvalue.Lookup(nil, "a"); found {
		t.Error("Lookup found a value in nil")
	}
}

func TestSetCreatesParents(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		root, want string
		path       jsonvalue.Path
		blocked    bool
	}{
		"new key":           {root: `{}`, path: jsonvalue.Path{"a"}, want: `{"a": "new"}`},
		"new parents":       {root: `{"z": 1}`, path: jsonvalue.Path{"a", "b", "c"}, want: `{"z": 1, "a": {"b": {"c": "new"}}}`},
		"beside a sibling":  {root: `{"a": {"x": 1}}`, path: jsonvalue.Path{"a", "b"}, want: `{"a": {"x": 1, "b": "new"}}`},
		"over a value":      {root: `{"a": {"b": 1}}`, path: jsonvalue.Path{"a", "b"}, want: `{"a": {"b": "new"}}`},
		"through a string":  {root: `{"a": "s"}`, path: jsonvalue.Path{"a", "b"}, want: `{"a": "s"}`, blocked: true},
		"through a null":    {root: `{"a": null}`, path: jsonvalue.Path{"a", "b"}, want: `{"a": null}`, blocked: true},
		"through a list":    {root: `{"a": []}`, path: jsonvalue.Path{"a", "0"}, want: `{"a": []}`, blocked: true},
		"at the empty path": {root: `{"a": 1}`, path: nil, want: `{"a": 1}`, blocked: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := object(t, tc.root)
			if err := jsonvalue.Set(root, "new", tc.path...); (err != nil) != tc.blocked {
				t.Errorf("Set: error %v, want one: %v", err, tc.blocked)
			}
			if diff := cmp.Diff(object(t, tc.want), root); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestRemoveDeletesEmptyParents(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		root, want string
		path       jsonvalue.Path
		blocked    bool
	}{
		"sibling keeps the parent":      {root: `{"a": {"b": 1, "x": 2}}`, path: jsonvalue.Path{"a", "b"}, want: `{"a": {"x": 2}}`},
		"only child":                    {root: `{"a": {"b": {"c": 1}}, "z": 1}`, path: jsonvalue.Path{"a", "b", "c"}, want: `{"z": 1}`},
		"parent that was empty before":  {root: `{"a": {}}`, path: jsonvalue.Path{"a", "b"}, want: `{}`},
		"grandparent that was empty":    {root: `{"a": {}}`, path: jsonvalue.Path{"a", "b", "c"}, want: `{}`},
		"nothing there":                 {root: `{"z": 1}`, path: jsonvalue.Path{"a", "b"}, want: `{"z": 1}`},
		"null value":                    {root: `{"a": {"b": null}}`, path: jsonvalue.Path{"a", "b"}, want: `{}`},
		"empty list is no empty parent": {root: `{"a": {"b": 1, "c": []}}`, path: jsonvalue.Path{"a", "b"}, want: `{"a": {"c": []}}`},
		"below a null":                  {root: `{"a": null}`, path: jsonvalue.Path{"a", "b"}, want: `{"a": null}`, blocked: true},
		"below a string, further down":  {root: `{"a": {"b": "s"}}`, path: jsonvalue.Path{"a", "b", "c"}, want: `{"a": {"b": "s"}}`, blocked: true},
		"root":                          {root: `{"a": 1}`, path: nil, want: `{"a": 1}`, blocked: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := object(t, tc.root)
			if err := jsonvalue.Remove(root, tc.path...); (err != nil) != tc.blocked {
				t.Errorf("Remove: error %v, want one: %v", err, tc.blocked)
			}
			if diff := cmp.Diff(object(t, tc.want), root); diff != "" {
				t.Errorf("Remove: -want, +got:\n%s", diff)
			}
			root = object(t, tc.root)
			jsonvalue.Drop(root, tc.path...)
			if diff := cmp.Diff(object(t, tc.want), root); diff != "" {
				t.Errorf("Drop: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestErrorsNameTheBlockingParent(t *testing.T) {
	t.Parallel()
	err := jsonvalue.Remove(object(t, `{"spec": {"a": "s"}}`), "spec", "a", "b")
	if want := "spec.a.b: spec.a is string, not an object"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}
