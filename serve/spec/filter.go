package spec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"gopf.dev/gopf/internal/jsonvalue"
)

// equal reports whether both filters have the same conditions.
func (w Where) equal(other Where) bool {
	return w.CEL == other.CEL && sameConditions(w.Labels, other.Labels) &&
		sameConditions(w.Annotations, other.Annotations) && sameConditions(w.Fields, other.Fields)
}

func sameConditions(a, b map[string]any) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func (c checker) where(w Where) {
	for _, part := range []struct {
		what       string
		conditions map[string]any
		key        func(at Pos, key string)
		value      func(value any) string
	}{
		{"labels", w.Labels, c.labelKey, labelValue},
		{"annotations", w.Annotations, c.annotationKey, annotationValue},
		{"fields", w.Fields, func(at Pos, key string) { c.path(at, "fields", key) }, func(any) string { return "" }},
	} {
		for _, key := range slices.Sorted(maps.Keys(part.conditions)) {
			at := w.KeyPos(w.Pos, part.what+"."+key)
			part.key(at, key)
			if problem := condition(part.conditions[key], part.value); problem != "" {
				c.problems.Add(at, "%s: the condition of %q %s", part.what, key, problem)
			}
		}
	}
}

// condition describes the mistake in a condition; see [Where]. Empty means none. value
// describes the mistake in an expected value.
func condition(v any, value func(any) string) string {
	switch x := v.(type) {
	case nil:
		return ""
	case []any:
		if len(x) == 0 {
			return "is an empty list, which matches no object; list the accepted values, or use null for no value"
		}
		for _, one := range x {
			if problem := condition(one, value); problem != "" {
				return problem
			}
		}
		return ""
	case map[string]any:
		if not, ok := x["not"]; ok && len(x) == 1 {
			if list, ok := not.([]any); ok && len(list) == 0 {
				return "is {not: []}, which matches all objects; list the values, or remove it"
			}
			return condition(not, value)
		}
		if _, ok := x["exists"].(bool); ok && len(x) == 1 {
			return ""
		}
		return "must be a value, a list, null, {exists: true|false} or {not: …}"
	}
	return value(v)
}

func (c checker) labelKey(at Pos, key string) {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		c.problems.Add(at, "labels: %q is not a label, so no object has it; use a name such as tier or example.com/tier: %s", key, brief(problems[0]))
	}
}

func (c checker) annotationKey(at Pos, key string) {
	if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
		c.problems.Add(at, "annotations: %q is not an annotation, so no object has it; use a name such as tier or example.com/tier: %s", key, brief(problems[0]))
	}
}

// brief returns a message of package validation without its examples and regular expressions.
func brief(message string) string {
	message, _, _ = strings.Cut(message, " (e.g.")
	return message
}

func annotationValue(v any) string {
	if _, ok := v.(string); !ok {
		return fmt.Sprintf("is %v, which is not a text; put it in quotes", v)
	}
	return ""
}

func labelValue(v any) string {
	if problem := annotationValue(v); problem != "" {
		return problem
	}
	if problems := validation.IsValidLabelValue(v.(string)); len(problems) > 0 {
		return fmt.Sprintf("has %q, which no label can have: %s", v, brief(problems[0]))
	}
	return ""
}

// path checks the path of a field.
func (c checker) path(at Pos, what, path string) {
	switch _, err := jsonvalue.ParsePath(path); {
	case err == nil:
	case strings.Contains(err.Error(), "empty"):
		c.problems.Add(at, "%s: the path %q has an empty part; write it as in spec.size", what, path)
	default:
		c.problems.Add(at, "%s: %v", what, err)
	}
}
