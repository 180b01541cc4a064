// Package breaking finds changes of custom resource definitions that break their users:
// manifests that were valid are rejected, or fields that were stored are lost. It is pure.
package breaking

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// AcceptedAnnotation is the annotation of a definition with the changes that its author has
// accepted: a JSON object of "VERSION PATH" to the reason.
const AcceptedAnnotation = "gopf.dev/accepted-breaks"

// Change is a breaking change.
type Change struct {
	Definition string
	Version    string // empty means the whole definition
	Path       string // dotted, with [] for list items and {} for map values; empty means the version
	What       string
	Before     any // nil means none
	After      any // nil means none
}

// String describes the change, with both values.
func (c Change) String() string {
	place := c.Definition
	if c.Version != "" {
		place += " " + c.Version
	}
	if c.Path != "" {
		place += " " + c.Path
	}
	switch {
	case c.Before != nil && c.After != nil:
		return fmt.Sprintf("%s: %s: %v before, %v now", place, c.What, text(c.Before), text(c.After))
	case c.Before != nil:
		return fmt.Sprintf("%s: %s: %v before", place, c.What, text(c.Before))
	case c.After != nil:
		return fmt.Sprintf("%s: %s: %v now", place, c.What, text(c.After))
	}
	return place + ": " + c.What
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

type object = map[string]any

// Compare returns the breaking changes between decoded definitions, sorted by their place.
// Changes that the newer definition accepts are left out. Definitions that are only in one
// of the lists are no change: they may be elsewhere.
func Compare(before, after []object) (all []Change) {
	for _, old := range before {
		at := slices.IndexFunc(after, func(o object) bool { return name(o) == name(old) })
		if at < 0 {
			continue
		}
		found := compareDefinitions(old, after[at])
		accepted := acceptedBy(after[at])
		all = append(all, slices.DeleteFunc(found, func(c Change) bool { return accepted.has(c) })...)
	}
	return all
}

func name(crd object) string {
	meta, _ := crd["metadata"].(object)
	text, _ := meta["name"].(string)
	return text
}

// accepted has the reasons by "VERSION PATH".
type accepted map[string]string

func acceptedBy(crd object) (all accepted) {
	meta, _ := crd["metadata"].(object)
	annotations, _ := meta["annotations"].(object)
	text, _ := annotations[AcceptedAnnotation].(string)
	if json.Unmarshal([]byte(text), &all) != nil {
		return nil
	}
	return all
}

// has reports whether the change, or the removal of a field from its parent, is accepted.
func (a accepted) has(c Change) bool {
	if a[c.Version+" "+c.Path] != "" {
		return true
	}
	parent := ""
	if at := strings.LastIndex(c.Path, "."); at >= 0 {
		parent = c.Path[:at]
	}
	return c.What == removed && a[c.Version+" "+parent] != ""
}

const removed = "the field was removed"

func compareDefinitions(old, now object) (all []Change) {
	w := walker{definition: name(old)}
	before, after := spec(old), spec(now)
	if before["scope"] != after["scope"] {
		w.note("", "the scope was changed", before["scope"], after["scope"])
	}
	versions := versionsOf(after)
	for _, v := range slices.Sorted(maps.Keys(versionsOf(before))) {
		w.version = v
		was := versionsOf(before)[v]
		if was["served"] != true {
			continue
		}
		is, ok := versions[v]
		if !ok || is["served"] != true {
			w.note("", "the version is no longer served", nil, nil)
			continue
		}
		w.subresources(was, is)
		w.schema("", schemaOf(was), schemaOf(is))
	}
	return w.found
}

func spec(crd object) object { s, _ := crd["spec"].(object); return s }

func versionsOf(spec object) map[string]object {
	all := map[string]object{}
	list, _ := spec["versions"].([]any)
	for _, v := range list {
		version, _ := v.(object)
		name, _ := version["name"].(string)
		all[name] = version
	}
	return all
}

func schemaOf(version object) object {
	s, _ := version["schema"].(object)
	root, _ := s["openAPIV3Schema"].(object)
	return root
}

type walker struct {
	definition, version string
	found               []Change
}

func (w *walker) note(path, what string, before, after any) {
	w.found = append(w.found, Change{w.definition, w.version, path, what, before, after})
}

func (w *walker) subresources(was, is object) {
	before, _ := was["subresources"].(object)
	after, _ := is["subresources"].(object)
	for _, one := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[one]; !ok {
			w.note("", "the subresource was removed", one, nil)
		}
	}
}

// schema compares two schemas of one field.
func (w *walker) schema(path string, was, is object) {
	w.types(path, was, is)
	w.enums(path, was, is)
	w.bounds(path, was, is)
	w.rules(path, was, is)
	w.properties(path, was, is)
	w.nested(path+"[]", was["items"], is["items"])
	w.nested(path+"{}", was["additionalProperties"], is["additionalProperties"])
}

func (w *walker) nested(path string, was, is any) {
	before, ok1 := was.(object)
	after, ok2 := is.(object)
	if ok1 && ok2 {
		w.schema(path, before, after)
	}
}

func (w *walker) types(path string, was, is object) {
	mixed := func(s object) bool { return s["x-kubernetes-int-or-string"] == true }
	before, after := was["type"], is["type"]
	switch {
	case mixed(was) && !mixed(is):
		w.note(path, "the type was changed", "integer or string", after)
	case mixed(is):
		if !mixed(was) && before != "integer" && before != "string" {
			w.note(path, "the type was changed", before, "integer or string")
		}
	case before == "integer" && after == "number": // wider
	case before != after && before != nil:
		w.note(path, "the type was changed", before, after)
	}
	if was["nullable"] == true && is["nullable"] != true {
		w.note(path, "null is no longer accepted", nil, nil)
	}
	if f := is["format"]; f != nil && f != was["format"] && !(was["format"] == "int32" && f == "int64") {
		w.note(path, "the format was changed", was["format"], f)
	}
	const unknown = "x-kubernetes-preserve-unknown-fields"
	if was[unknown] == true && is[unknown] != true {
		w.note(path, "unknown fields are no longer kept", nil, nil)
	}
	for _, key := range []string{"x-kubernetes-list-type", "x-kubernetes-map-type"} {
		if is[key] == "set" && was[key] != "set" || is[key] == "map" && was[key] != "map" {
			w.note(path, "items must be unique", was[key], is[key])
		}
	}
	if w.keysChanged(was, is) {
		w.note(path, "the keys of the list were changed", was["x-kubernetes-list-map-keys"], is["x-kubernetes-list-map-keys"])
	}
}

func (w *walker) keysChanged(was, is object) bool {
	const keys = "x-kubernetes-list-map-keys"
	return was[keys] != nil && is[keys] != nil && !reflect.DeepEqual(was[keys], is[keys])
}

func (w *walker) enums(path string, was, is object) {
	after, ok := is["enum"].([]any)
	if !ok {
		return
	}
	before, had := was["enum"].([]any)
	if !had {
		w.note(path, "the values were restricted", nil, after)
		return
	}
	for _, v := range before {
		if !slices.ContainsFunc(after, func(other any) bool { return reflect.DeepEqual(v, other) }) {
			w.note(path, "a value was removed", v, after)
		}
	}
}

// bounds compares limits. A limit that is new, or stricter, is breaking.
func (w *walker) bounds(path string, was, is object) {
	for _, key := range []string{"minimum", "minLength", "minItems", "minProperties"} {
		w.bound(path, key, was[key], is[key], func(before, after float64) bool { return after > before }, 0)
	}
	for _, key := range []string{"maximum", "maxLength", "maxItems", "maxProperties"} {
		w.bound(path, key, was[key], is[key], func(before, after float64) bool { return after < before }, -1)
	}
	for _, key := range []string{"exclusiveMinimum", "exclusiveMaximum", "uniqueItems"} {
		if is[key] == true && was[key] != true {
			w.note(path, key+" was added", nil, nil)
		}
	}
	for _, key := range []string{"pattern", "multipleOf"} {
		if is[key] != nil && !reflect.DeepEqual(was[key], is[key]) {
			w.note(path, "the "+key+" was changed", was[key], is[key])
		}
	}
}

// bound compares one limit. free is a value that limits nothing.
func (w *walker) bound(path, key string, was, is any, stricter func(before, after float64) bool, free float64) {
	after, ok := number(is)
	if !ok {
		return
	}
	before, had := number(was)
	if had && !stricter(before, after) || !had && after == free && key != "minimum" {
		return
	}
	w.note(path, key+" is stricter", was, is)
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	}
	return 0, false
}

// rules compares validation rules. The text decides: a new or changed rule may reject
// objects that were valid.
func (w *walker) rules(path string, was, is object) {
	before := rulesOf(was)
	for _, r := range rulesOf(is) {
		if !slices.Contains(before, r) {
			w.note(path, "a validation rule was added", nil, r)
		}
	}
}

func rulesOf(s object) (all []string) {
	list, _ := s["x-kubernetes-validations"].([]any)
	for _, v := range list {
		rule, _ := v.(object)
		text, _ := rule["rule"].(string)
		all = append(all, text)
	}
	return all
}

func (w *walker) properties(path string, was, is object) {
	before, _ := was["properties"].(object)
	after, _ := is["properties"].(object)
	for _, key := range slices.Sorted(maps.Keys(before)) {
		field := strings.TrimPrefix(path+"."+key, ".")
		old, _ := before[key].(object)
		now, ok := after[key].(object)
		if !ok {
			w.note(field, removed, nil, nil)
			continue
		}
		w.schema(field, old, now)
	}
	required := words(is["required"])
	for _, key := range required {
		field, _ := after[key].(object)
		if _, defaulted := field["default"]; !defaulted && !slices.Contains(words(was["required"]), key) {
			w.note(strings.TrimPrefix(path+"."+key, "."), "the field is required, and has no default", nil, nil)
		}
	}
}

func words(v any) (all []string) {
	list, _ := v.([]any)
	for _, one := range list {
		text, _ := one.(string)
		all = append(all, text)
	}
	return all
}
