// Package schema finds the paths of fields in Go types and in the OpenAPI schemas that
// the API server publishes. It reports paths of handlers that the cluster does not have.
package schema

import (
	"slices"
	"strings"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/suggest"
)

// Verdict says whether a type or a schema has a path.
type Verdict int

// The verdicts.
const (
	Exists  Verdict = iota // the path is described
	Unknown                // any value is possible there
	Missing                // no object can have a value there
)

// Finding is the result of looking for a path.
type Finding struct {
	Verdict Verdict
	At      int      // if missing: the index of the first key that does not exist
	Known   []string // if missing: the keys that exist there, sorted; nil means that the parent has no keys
	Parent  string   // if missing: "list" or "plain value", if the parent has no keys
}

// missing returns the finding for a key that is not among the known ones.
func missing(at int, known []string) Finding {
	slices.Sort(known)
	return Finding{Verdict: Missing, At: at, Known: slices.Compact(known)}
}

// Meant returns the path with the missing key replaced by the most similar one. ok is
// false if none is similar.
func (f Finding) Meant(path jsonvalue.Path) (meant jsonvalue.Path, ok bool) {
	if f.Verdict != Missing {
		return nil, false
	}
	word := suggest.Closest(path[f.At], f.Known)
	if word == "" {
		return nil, false
	}
	meant = slices.Clone(path)
	meant[f.At] = word
	return meant, true
}

// Typo is like [Finding.Meant], but only for keys that are almost certainly misspelled.
func (f Finding) Typo(path jsonvalue.Path) (meant jsonvalue.Path, ok bool) {
	if f.Verdict != Missing {
		return nil, false
	}
	i := slices.IndexFunc(f.Known, func(word string) bool { return suggest.Typo(path[f.At], word) })
	if i < 0 {
		return nil, false
	}
	meant = slices.Clone(path)
	meant[f.At] = f.Known[i]
	return meant, true
}

// Text returns the path as users write it: dotted, or as a JSON pointer if a key
// contains a dot.
func Text(path jsonvalue.Path) string {
	if slices.ContainsFunc(path, func(key string) bool { return strings.ContainsAny(key, "./") }) {
		return path.Pointer()
	}
	return path.String()
}
