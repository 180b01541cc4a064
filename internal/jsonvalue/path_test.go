package jsonvalue_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/jsonvalue"
)

func TestPathsAreDottedOrPointers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		text    string
		want    jsonvalue.Path
		invalid bool
	}{
		"one key":                   {text: "spec", want: jsonvalue.Path{"spec"}},
		"dotted":                    {text: "spec.template.spec", want: jsonvalue.Path{"spec", "template", "spec"}},
		"slash inside a dotted key": {text: "data.a/b", want: jsonvalue.Path{"data", "a/b"}},
		"tilde in a dotted key":     {text: "data.~1", want: jsonvalue.Path{"data", "~1"}},
		"pointer":                   {text: "/spec/size", want: jsonvalue.Path{"spec", "size"}},
		"pointer with dots and a slash": {
			text: "/metadata/labels/app.kubernetes.io~1name",
			want: jsonvalue.Path{"metadata", "labels", "app.kubernetes.io/name"},
		},
		"pointer with an escaped escape": {text: "/a~01", want: jsonvalue.Path{"a~1"}},
		"pointer with both escapes":      {text: "/~0~1~0", want: jsonvalue.Path{"~/~"}},
		"empty":                          {text: "", invalid: true},
		"empty key":                      {text: "spec..size", invalid: true},
		"leading dot":                    {text: ".spec", invalid: true},
		"trailing dot":                   {text: "spec.", invalid: true},
		"only a slash":                   {text: "/", invalid: true},
		"trailing slash":                 {text: "/spec/", invalid: true},
		"lone tilde in a pointer":        {text: "/a~b", invalid: true},
		"final tilde in a pointer":       {text: "/a~", invalid: true},
		"unknown escape":                 {text: "/a~2", invalid: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := jsonvalue.ParsePath(tc.text)
			if (err != nil) != tc.invalid {
				t.Fatalf("Parse(%q): error %v, want one: %v", tc.text, err, tc.invalid)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Parse(%q): -want, +got:\n%s", tc.text, diff)
			}
		})
	}
}

func TestPathsPrintInBothForms(t *testing.T) {
	t.Parallel()
	path := jsonvalue.Path{"metadata", "annotations", "a.b/c~d"}
	if got, want := path.String(), "metadata.annotations.a.b/c~d"; got != want {
		t.Errorf("String: got %q, want %q", got, want)
	}
	if got, want := path.Pointer(), "/metadata/annotations/a.b~1c~0d"; got != want {
		t.Errorf("Pointer: got %q, want %q", got, want)
	}
	again, err := jsonvalue.ParsePath(path.Pointer())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(path, again); diff != "" {
		t.Errorf("a pointer read again: -want, +got:\n%s", diff)
	}
}

func TestHasPrefixComparesWholeKeys(t *testing.T) {
	t.Parallel()
	path := jsonvalue.Path{"spec", "size"}
	cases := map[string]struct {
		prefix jsonvalue.Path
		want   bool
	}{
		"root":         {prefix: nil, want: true},
		"parent":       {prefix: jsonvalue.Path{"spec"}, want: true},
		"itself":       {prefix: jsonvalue.Path{"spec", "size"}, want: true},
		"child":        {prefix: jsonvalue.Path{"spec", "size", "x"}, want: false},
		"part of key":  {prefix: jsonvalue.Path{"spe"}, want: false},
		"another path": {prefix: jsonvalue.Path{"spec", "sizes"}, want: false},
	}
	for name, tc := range cases {
		if got := path.HasPrefix(tc.prefix...); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func FuzzPointersReadBackAsWritten(f *testing.F) {
	f.Add("a", "b.c")
	f.Add("~1", "/")
	f.Add("~", "~0~")
	f.Fuzz(func(t *testing.T, one, two string) {
		if one == "" || two == "" {
			t.Skip()
		}
		want := jsonvalue.Path{one, two}
		got, err := jsonvalue.ParsePath(want.Pointer())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

// Handlers may put a text of an object into a path.
func TestPathsHaveNoMoreLevelsThanObjects(t *testing.T) {
	for _, separator := range []string{".", "/"} {
		text := strings.TrimPrefix(strings.Repeat(separator+"a", jsonvalue.MaxDepth), ".")
		if path, err := jsonvalue.ParsePath(text); err != nil || len(path) != jsonvalue.MaxDepth {
			t.Errorf("%q: %d keys, %v", separator, len(path), err)
		}
		if _, err := jsonvalue.ParsePath(text + separator + "a" + separator + "a"); err == nil || len(err.Error()) > 200 {
			t.Errorf("%q: got %v", separator, err)
		}
	}
}
