// Package tests runs the YAML tests of operators without Go code.
package tests

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"gopf.dev/gopf/serve/spec"
)

// Test is one test of a file.
type Test struct {
	spec.Pos `json:"-"`

	Name     string         `json:"name"`
	Operator string         `json:"operator"` // default: operator.yaml
	Handler  string         `json:"handler"`
	Object   spec.Node      `json:"object"` // a map, or the name of a file
	Was      spec.Node      `json:"was"`
	Reason   string         `json:"reason"`
	Retry    int            `json:"retry"`
	User     map[string]any `json:"user"`
	Children []spec.Node    `json:"children"`
	Expect   spec.Node      `json:"expect"` // default: success without output

	Steps []Step `json:"steps"` // of a test on a cluster in memory
}

// Step is one step of a test on a cluster in memory.
type Step struct {
	spec.Pos `json:"-"`

	Apply  spec.Node     `json:"apply"`
	Until  string        `json:"until"`
	Within time.Duration `json:"within"` // default: 10s
	Delete bool          `json:"delete"`
	Gone   bool          `json:"gone"`
}

// load reads the tests of a file, and reports all mistakes.
func load(files fs.FS, file string) ([]Test, spec.Problems) {
	var problems spec.Problems
	var list []Test
	text, err := fs.ReadFile(files, file)
	if err != nil {
		problems.Add(spec.Pos{File: file, Line: 1}, "%v", err)
		return nil, problems
	}
	spec.Decode(file, text, &list, &problems)
	for i := range list {
		t := &list[i]
		switch {
		case t.Name == "":
			problems.Add(t.Pos, "name is missing")
		case (t.Handler == "") == (len(t.Steps) == 0):
			problems.Add(t.Pos, "test %q must have either a handler or steps", t.Name)
		}
		for _, s := range t.Steps {
			n := 0
			for _, given := range []bool{s.Apply.Present(), s.Until != "", s.Delete, s.Gone} {
				if given {
					n++
				}
			}
			if n != 1 {
				problems.Add(s.Pos, "a step must have one of apply, until, delete and gone")
			}
		}
	}
	return list, problems
}

// object returns a map, or the content of the file that the node names.
func object(files fs.FS, file string, n spec.Node) (map[string]any, error) {
	switch v := n.Value.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	case string:
		return readObject(files, path.Join(path.Dir(file), v))
	}
	return nil, fmt.Errorf("%s: a map or the name of a file is expected", n.Pos)
}

func readObject(files fs.FS, file string) (map[string]any, error) {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return nil, err
	}
	var problems spec.Problems
	var n spec.Node
	spec.Decode(file, text, &n, &problems)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	m, ok := n.Value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a map", file)
	}
	return m, nil
}

// matches compares an output with an expectation, and returns the differences. A map in
// the expectation may have fewer keys, except at top level; a text may have * for any
// characters.
func matches(expected, actual any, path string) []string {
	switch e := expected.(type) {
	case map[string]any:
		a, ok := actual.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %s, not a map", path, short(actual))}
		}
		var found []string
		for key, v := range e {
			got, present := a[key]
			if !present && v != nil {
				found = append(found, fmt.Sprintf("%s.%s is missing", path, key))
				continue
			}
			found = append(found, matches(v, got, path+"."+key)...)
		}
		return found
	case []any:
		a, ok := actual.([]any)
		if !ok || len(a) != len(e) {
			return []string{fmt.Sprintf("%s is %s, not a list of %d", path, short(actual), len(e))}
		}
		var found []string
		for i := range e {
			found = append(found, matches(e[i], a[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
		return found
	case string:
		if a, ok := actual.(string); ok && glob(e, a) {
			return nil
		}
	default:
		if equal(expected, actual) {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s is %s, not %s", path, short(actual), short(expected))}
}

// glob reports whether the text matches the pattern, in which * stands for any characters.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}
