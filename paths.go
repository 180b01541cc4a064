package gopf

import (
	"fmt"
	"reflect"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/schema"
)

// path parses the path of a declaration and checks it against T. A misspelled field is a
// declaration error. Any other field that T lacks is a doubt, which the operator logs
// unless the schema of the cluster has the field: types may lack fields on purpose.
func (r *Resource[T]) path(path string) (keys []string, doubt string) {
	parsed, err := jsonvalue.ParsePath(path)
	if err != nil {
		r.op.problem("%w", err)
		return nil, ""
	}
	t, name := reflect.TypeFor[T](), "the metadata of objects"
	if isUntyped[T]() {
		t = nil
	} else if parsed[0] != "metadata" {
		name = typeName(t)
	}
	problem, doubt := judgePath(schema.InObject(t, parsed), parsed, name)
	if problem != "" {
		r.op.problem("%s", problem)
	}
	return parsed, doubt
}

// changesWithEveryWrite reports whether each write to an object changes the field. An operator
// that handles such a field would handle its own writes.
func changesWithEveryWrite(path []string) bool {
	if len(path) == 0 || path[0] != "metadata" {
		return false
	}
	return len(path) == 1 || path[1] == "resourceVersion" || path[1] == "managedFields"
}

// judgePath describes a path that a type does not have, either as a problem or as a
// doubt. For a path without mistakes, both are empty. A path is a problem only if it is
// almost certainly misspelled. Directly below the status, it never is: handlers store
// their results there under their own ids.
func judgePath(f schema.Finding, path jsonvalue.Path, of string) (problem, doubt string) {
	text := schema.Text(path)
	result := f.At == 1 && path[0] == "status"
	typo, misspelled := f.Typo(path)
	meant, similar := f.Meant(path)
	switch {
	case f.Verdict != schema.Missing:
		return "", ""
	case f.Parent != "":
		return "", fmt.Sprintf("%s: in %s, %s is a %s and has no fields.", text, of, schema.Text(path[:f.At]), f.Parent)
	case misspelled && !result:
		return fmt.Sprintf("%s: %s has no such field; did you mean %s?", text, of, schema.Text(typo)), ""
	case similar:
		return "", fmt.Sprintf("%s: %s has no such field; did you mean %s?", text, of, schema.Text(meant))
	case result:
		return "", ""
	}
	return "", fmt.Sprintf("%s: %s has no such field.", text, of)
}

// typeName returns the name of a type without its package, as in "*Database".
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		return "*" + typeName(t.Elem())
	}
	if t.Name() == "" {
		return t.String()
	}
	return t.Name()
}
