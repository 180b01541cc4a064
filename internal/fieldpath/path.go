// Package fieldpath names places inside of JSON objects and reads, writes and
// removes what is there.
//
// A path is a list of keys. Only objects are descended into: items of lists
// have no paths, in the same way as a merge patch cannot address them.
package fieldpath

import (
	"fmt"
	"slices"
	"strings"
)

// Path is the keys that lead from the root of an object to a value, outermost
// first. The empty path is the root itself.
type Path []string

// Parse reads a path as people write it: keys joined by dots ("spec.size"), or
// a JSON pointer when it begins with a slash, which is the form for keys that
// contain dots ("/metadata/labels/app.kubernetes.io~1name"; "~1" is a slash,
// "~0" a tilde).
//
// Unlike [Split] it is strict: the empty path, empty keys, and other uses of
// the tilde in a pointer are errors, as each of them is a slip of the pen.
func Parse(s string) (Path, error) {
	if s == "" {
		return nil, fmt.Errorf("the path is empty")
	}
	path := Split(s)
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

// Split cuts a dotted path at every dot, with no escapes and no checks: it is
// Kopf's reading of such strings. The empty string is one empty key.
func Split(s string) Path {
	return strings.Split(s, ".")
}

// String joins the keys by dots, as Kopf does in handler ids. The result is
// ambiguous if keys contain dots; see [Path.Pointer] for the form that is not.
func (p Path) String() string {
	return strings.Join(p, ".")
}

// Pointer returns the path as a JSON pointer, from which [Parse] makes the same
// path again, except for the root and empty keys, which it does not accept.
func (p Path) Pointer() string {
	var b strings.Builder
	for _, key := range p {
		b.WriteByte('/')
		b.WriteString(escapes.Replace(key))
	}
	return b.String()
}

// HasPrefix tells whether the path is at, or anywhere below, the given one.
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
