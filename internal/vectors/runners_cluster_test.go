package vectors_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/observe"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/kind"
)

// clusterOf reads the resources that the cases of a file share.
func clusterOf(t *testing.T, v vector) (all []kind.Info) {
	type resource struct {
		Group, Version, Plural, Singular, Kind string
		Shortcuts, Categories, Subresources    []string
		Namespaced, Preferred                  bool
		Verbs                                  []string
		Repr                                   string
	}
	for _, r := range decode[[]resource](t, v.File["resources"]) {
		info := kind.Info{
			Group: r.Group, Version: r.Version, Plural: r.Plural, Singular: r.Singular, Kind: r.Kind,
			ShortNames: r.Shortcuts, Categories: r.Categories, Subresources: r.Subresources,
			Namespaced: r.Namespaced, Preferred: r.Preferred, Verbs: r.Verbs,
		}
		if info.String() != r.Repr {
			t.Errorf("a resource is named %q, want %q", info, r.Repr)
		}
		all = append(all, info)
	}
	return all
}

func selector(t *testing.T, v vector) {
	if v.Part == "urls" {
		url(t, v)
		return
	}
	c := decode[struct {
		Args          []string
		Kwargs        map[string]string
		Callable      string
		IsSpecific    bool `json:"is_specific"`
		Check, Select []string
		Error         string
	}](t, v.JSON)
	s, err := selectorOf(c.Args, c.Kwargs, c.Callable)
	if (err != nil) != (c.Error != "") {
		t.Fatalf("got the error %v, want %q", err, c.Error)
	}
	if err != nil {
		return
	}
	var check []string
	all := clusterOf(t, v)
	for _, info := range all {
		if s.Matches(info) {
			check = append(check, info.String())
		}
	}
	if c.Callable != "" {
		// Events are so many that none but explicit selectors get them, whatever
		// their version; Kopf lets the versions pass that are not preferred.
		notEvents := func(name string) bool { return strings.HasPrefix(name, "events.") }
		c.Check, c.Select = slices.DeleteFunc(c.Check, notEvents), slices.DeleteFunc(c.Select, notEvents)
	}
	same(t, "matches", check, c.Check)
	same(t, "selects", names(s.Select(all)), c.Select)
	if s.Specific() != c.IsSpecific {
		t.Errorf("specific: got %v, want %v", s.Specific(), c.IsSpecific)
	}
}

// selectorOf makes a selector of Kopf's arguments: positional ones are joined
// into a text, named ones become calls.
func selectorOf(args []string, kwargs map[string]string, callable string) (s kind.Selector, err error) {
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "<EVERYTHING>", "*")
	}
	switch {
	case callable != "":
		s = kind.Matching(func(kind.Info) bool { return true })
	case len(args) == 3 && args[0] == "": // the core group has no name that a text could have
		s, err = kind.Parse(strings.Join(args[1:], "/"))
	case len(args) > 0:
		s, err = kind.Parse(strings.Join(args, "/"))
	}
	names := map[string]func(string) kind.Selector{
		"kind": kind.Kind, "plural": kind.Plural, "singular": kind.Singular, "shortcut": kind.ShortName, "category": kind.Category,
	}
	given := 0
	for key, value := range kwargs {
		if byName := names[key]; byName != nil {
			s = byName(value)
			given++
		}
	}
	if given > 1 {
		return s, errTwoNames // not a selector that can be written in Go
	}
	if group, ok := kwargs["group"]; ok {
		s = s.InGroup(group)
	}
	if version, ok := kwargs["version"]; ok {
		s = s.InVersion(version)
	}
	if err == nil {
		err = s.Err()
	}
	return s, err
}

type constError string

func (e constError) Error() string { return string(e) }

const errTwoNames = constError("two names")

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func names(infos []kind.Info) (found []string) {
	for _, i := range infos {
		found = append(found, i.String())
	}
	return found
}

func url(t *testing.T, v vector) {
	c := decode[struct {
		Resource   string
		Namespaced bool
		Args       struct{ Server, Namespace, Name, Subresource string }
		URL, Error string
	}](t, v.JSON)
	var target kube.Target
	for _, info := range clusterOf(t, v) {
		if info.String() == c.Resource {
			info.Namespaced = c.Namespaced
			target = kube.Target{Info: info, Namespace: c.Args.Namespace, Name: c.Args.Name, Subresource: c.Args.Subresource}
		}
	}
	path, err := target.Path()
	if (err != nil) != (c.Error != "") {
		t.Fatalf("got the error %v, want %q", err, c.Error)
	}
	if got := strings.TrimSuffix(c.Args.Server, "/") + path; err == nil && got != c.URL {
		t.Errorf("got %q, want %q", got, c.URL)
	}
}

func namespacePattern(t *testing.T, v vector) {
	c := decode[struct {
		Pattern  string
		Regex    *string
		Matching []string
		Specific bool `json:"is_specific_for_fallback"`
	}](t, v.JSON)
	p := observe.Globs(c.Pattern)
	if c.Regex != nil {
		p = observe.Regexp(regexp.MustCompile(*c.Regex))
	}
	var got []string
	for _, name := range decode[[]string](t, v.File["namespaces"]) {
		if p.Match(name) {
			got = append(got, name)
		}
	}
	same(t, "matches", got, c.Matching)
	// With brackets it is a pattern for us, since it matches as one.
	if want := c.Specific && !strings.Contains(c.Pattern, "["); p.Plain() != want {
		t.Errorf("is a plain name: got %v, want %v", p.Plain(), want)
	}
}

func admissionPatch(t *testing.T, v vector) {
	c := decode[struct {
		Body       map[string]any
		MergePatch map[string]any  `json:"merge_patch"`
		JSONPatch  json.RawMessage `json:"json_patch"`
	}](t, v.JSON)
	body, err := object.FromMap(c.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := patched(t, body, patch.Ops(body.Map(), c.MergePatch, func(string) bool { return true }))
	if want := patched(t, body, c.JSONPatch); !diff.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
