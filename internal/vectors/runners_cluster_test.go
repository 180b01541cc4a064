package vectors_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

func namespacePattern(t *testing.T, v vector) {
	c := decode[struct {
		Pattern  string
		Regex    *string
		Matching []string
		Specific bool `json:"is_specific_for_fallback"`
	}](t, v.JSON)
	p := discovery.Globs(c.Pattern)
	if c.Regex != nil {
		p = discovery.Regexp(regexp.MustCompile(*c.Regex))
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
