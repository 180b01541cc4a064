package jsonvalue

import (
	"fmt"
	"slices"
	"strings"
)

// Path has the keys from the root of an object to a value, outermost first. The empty
// path is the root itself.
type Path []string

// ParsePath parses a path in one of two forms: keys joined by dots ("spec.size"), or a JSON
// pointer, which starts with a slash. The pointer is for keys that contain dots, as in
// "/metadata/labels/app.kubernetes.io~1name"; "~1" is a slash, "~0" a tilde.
//
// Unlike [SplitPath] it is strict: the empty path, empty keys, and other uses of the tilde
// in a pointer are errors, because they are most likely typos.
func ParsePath(s string) (Path, error) {
	if s == "" {
		return nil, fmt.Errorf("the path is empty")
	}
	keys := 1 + strings.Count(s, ".")
	if strings.HasPrefix(s, "/") {
		keys = strings.Count(s, "/")
	}
	if keys > MaxDepth { // handlers may put a text of an object into a path
		return nil, fmt.Errorf("the path %.40q… has %d keys, more than %d", s, keys, MaxDepth)
	}
	path := SplitPath(s)
	if strings.HasPrefix(s, "/") {
		var err error
		if path, err = parsePointer(s); err != nil {
			return nil, err
		}
	}
	if slices.Contains(path, "") {
		return nil, fmt.Errorf("path %q has an empty key", s)
	}
	return path, nil
}

// SplitPath splits a dotted path at every dot, without escapes and checks, as Kopf does. The
// empty string is one empty key.
func SplitPath(s string) Path {
	return strings.Split(s, ".")
}

// String joins the keys with dots, as Kopf does in handler ids. The result is ambiguous
// if keys contain dots; [Path.Pointer] is not.
func (p Path) String() string {
	return strings.Join(p, ".")
}

// Pointer returns the path as a JSON pointer. [Parse] returns the same path for it,
// except for the root and for empty keys, which it rejects.
func (p Path) Pointer() string {
	var b strings.Builder
	for _, key := range p {
		b.WriteByte('/')
		b.WriteString(escapes.Replace(key))
	}
	return b.String()
}

// HasPrefix reports whether the path equals prefix or is below it.
func (p Path) HasPrefix(prefix ...string) bool {
	return len(p) >= len(prefix) && slices.Equal(p[:len(prefix)], prefix)
}

var (
	escapes   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapes = strings.NewReplacer("~0", "~", "~1", "/")
)

func parsePointer(s string) (Path, error) {
	path := Path(strings.Split(s[1:], "/"))
	for i, key := range path {
		if strings.Count(key, "~") != strings.Count(key, "~0")+strings.Count(key, "~1") {
			return nil, fmt.Errorf("path %q: in a JSON pointer a tilde is written as ~0 and a slash as ~1", s)
		}
		path[i] = unescapes.Replace(key)
	}
	return path, nil
}
