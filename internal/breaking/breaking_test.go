package breaking

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// crd returns a definition with the schema of spec.
func crd(t *testing.T, spec, more string) object {
	t.Helper()
	var fields, o object
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatal(err)
	}
	text := `
metadata: {name: databases.example.com` + more + `}
spec:
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {}}}}
`
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	root := o["spec"].(object)["versions"].([]any)[0].(object)["schema"].(object)["openAPIV3Schema"].(object)
	root["properties"].(object)["spec"] = fields
	return o
}

// Each edit changes the schema of spec. The expected text is part of the only change, and
// empty means that the edit breaks nothing.
func TestEditsAreClassified(t *testing.T) {
	base := `{type: object, required: [a], properties: {a: {type: string}, num: {type: integer, minimum: 1, maximum: 9}, l: {type: array, maxItems: 3, items: {type: object, properties: {x: {type: string}}}}, e: {type: string, enum: [p, q]}, m: {type: object, additionalProperties: {type: integer}}}}`
	for name, edit := range map[string]struct{ from, to, want string }{
		"nothing":                      {"", "", ""},
		"a field is removed":           {", e: {type: string, enum: [p, q]}", "", "spec.e: the field was removed"},
		"a nested field is removed":    {"{x: {type: string}}", "{}", "spec.l[].x: the field was removed"},
		"a type is changed":            {"a: {type: string}", "a: {type: integer}", "spec.a: the type was changed: string before, integer now"},
		"an integer becomes a number":  {"type: integer, minimum", "type: number, minimum", ""},
		"a type of items is changed":   {"x: {type: string}", "x: {type: boolean}", "spec.l[].x: the type was changed"},
		"a type of values is changed":  {"additionalProperties: {type: integer}", "additionalProperties: {type: string}", "spec.m{}: the type was changed"},
		"a string accepts numbers":     {"a: {type: string}", "a: {x-kubernetes-int-or-string: true}", ""},
		"a value is removed":           {"enum: [p, q]", "enum: [p]", "spec.e: a value was removed: q before"},
		"a value is added":             {"enum: [p, q]", "enum: [p, q, r]", ""},
		"values are reordered":         {"enum: [p, q]", "enum: [q, p]", ""},
		"an enum is dropped":           {", enum: [p, q]", "", ""},
		"an enum is added":             {"a: {type: string}", "a: {type: string, enum: [z]}", "spec.a: the values were restricted"},
		"a minimum is raised":          {"minimum: 1", "minimum: 2", "spec.num: minimum is stricter: 1 before, 2 now"},
		"a minimum is lowered":         {"minimum: 1", "minimum: 0", ""},
		"a minimum is dropped":         {"minimum: 1, ", "", ""},
		"a maximum is lowered":         {"maximum: 9", "maximum: 8", "spec.num: maximum is stricter: 9 before, 8 now"},
		"a maximum is raised":          {"maximum: 9", "maximum: 10", ""},
		"a length is limited":          {"a: {type: string}", "a: {type: string, maxLength: 3}", "spec.a: maxLength is stricter: 3 now"},
		"a length has a minimum":       {"a: {type: string}", "a: {type: string, minLength: 1}", "spec.a: minLength is stricter"},
		"a length has no real minimum": {"a: {type: string}", "a: {type: string, minLength: 0}", ""},
		"fewer items":                  {"maxItems: 3", "maxItems: 2", "spec.l: maxItems is stricter"},
		"more items":                   {"maxItems: 3", "maxItems: 4", ""},
		"a pattern is added":           {"a: {type: string}", "a: {type: string, pattern: x}", "spec.a: the pattern was changed"},
		"a bound becomes exclusive":    {"minimum: 1", "minimum: 1, exclusiveMinimum: true", "spec.num: exclusiveMinimum was added"},
		"items must be unique":         {"maxItems: 3", "maxItems: 3, x-kubernetes-list-type: set", "spec.l: items must be unique"},
		"a format is added":            {"a: {type: string}", "a: {type: string, format: date-time}", "spec.a: the format was changed"},
		"a field becomes required":     {"required: [a]", "required: [a, e]", "spec.e: the field is required, and has no default"},
		"a required field is new":      {"required: [a], properties: {", "required: [a, z], properties: {z: {type: string}, ", "spec.z: the field is required"},
		"a new field has a default":    {"required: [a], properties: {", "required: [a, z], properties: {z: {type: string, default: x}, ", ""},
		"a new field is optional":      {"properties: {a:", "properties: {z: {type: string}, a:", ""},
		"a field becomes optional":     {"required: [a], ", "", ""},
		"a default is added":           {"a: {type: string}", "a: {type: string, default: x}", ""},
		"a description is changed":     {"a: {type: string}", "a: {type: string, description: x}", ""},
		"a rule is added":              {"a: {type: string}", "a: {type: string, x-kubernetes-validations: [{rule: self != ''}]}", "spec.a: a validation rule was added"},
		"unknown fields are kept":      {"{type: object, required", "{type: object, x-kubernetes-preserve-unknown-fields: true, required", ""},
		"null is accepted":             {"a: {type: string}", "a: {type: string, nullable: true}", ""},
		"divisible numbers only":       {"maximum: 9", "maximum: 9, multipleOf: 3", "spec.num: the multipleOf was changed"},
		"fewer properties":             {"m: {type: object, ", "m: {type: object, maxProperties: 2, ", "spec.m: maxProperties is stricter"},
		"a list needs items":           {"maxItems: 3", "maxItems: 3, minItems: 1", "spec.l: minItems is stricter"},
	} {
		if !strings.Contains(base, edit.from) {
			t.Fatalf("%s: the schema has no %q", name, edit.from)
		}
		now := base
		if edit.from != "" {
			now = strings.Replace(base, edit.from, edit.to, 1)
		}
		got := Compare([]object{crd(t, base, "")}, []object{crd(t, now, "")})
		switch {
		case edit.want == "" && len(got) > 0, edit.want != "" && (len(got) != 1 || !strings.Contains(got[0].String(), edit.want)):
			t.Errorf("%s: got %v, want %q", name, got, edit.want)
		}
	}
}

func TestDirectionMattersForNullAndUnknownFields(t *testing.T) {
	for _, key := range []string{"nullable", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"} {
		before, after := crd(t, `{`+key+`: true}`, ""), crd(t, `{}`, "")
		if got := Compare([]object{before}, []object{after}); len(got) != 1 {
			t.Errorf("%s is dropped: got %v", key, got)
		}
	}
}

func TestVersionsAndScopesAreCompared(t *testing.T) {
	before, after := crd(t, `{}`, ""), crd(t, `{}`, "")
	after["spec"].(object)["scope"] = "Cluster"
	after["spec"].(object)["versions"].([]any)[0].(object)["name"] = "v2"
	got := Compare([]object{before}, []object{after})
	if len(got) != 2 || !strings.Contains(got[0].String(), "the scope was changed") || got[1].String() != "databases.example.com v1: the version is no longer served" {
		t.Errorf("got %v", got)
	}
	after = crd(t, `{}`, "")
	delete(after["spec"].(object)["versions"].([]any)[0].(object), "subresources")
	if got := Compare([]object{before}, []object{after}); len(got) != 1 || !strings.Contains(got[0].String(), "the subresource was removed: status") {
		t.Errorf("got %v", got)
	}
}

func TestAcceptedChangesAreLeftOut(t *testing.T) {
	before := crd(t, `{properties: {a: {type: string}, b: {type: string}}}`, "")
	now := `{properties: {a: {type: integer}}}`
	for accept, want := range map[string]string{
		`{"v1 spec.a": "why"}`:                  "databases.example.com v1 spec.b: the field was removed",
		`{"v1 spec": "why"}`:                    "databases.example.com v1 spec.a: the type was changed: string before, integer now",
		`{"v1 spec": "why", "v1 spec.a": "so"}`: "",
	} {
		var lines []string
		for _, c := range Compare([]object{before}, []object{crd(t, now, `, annotations: {gopf.dev/accepted-breaks: '`+accept+`'}`)}) {
			lines = append(lines, c.String())
		}
		if got := strings.Join(lines, "\n"); got != want {
			t.Errorf("%s: got %q, want %q", accept, got, want)
		}
	}
}
