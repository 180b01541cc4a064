package discovery

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Namespaces are patterns for the namespaces to serve; see [Globs]. An empty list means
// the whole cluster.
type Namespaces []Pattern

// Match reports whether one of the patterns matches the name.
func (ns Namespaces) Match(name string) bool {
	for _, p := range ns {
		if p.Match(name) {
			return true
		}
	}
	return false
}

// String returns the patterns for messages.
func (ns Namespaces) String() string {
	texts := make([]string, len(ns))
	for i, p := range ns {
		texts[i] = p.String()
	}
	return strings.Join(texts, " or ")
}

// Fixed returns the names if all patterns are plain names. Then the operator
// does not list the existing namespaces.
func (ns Namespaces) Fixed() (names []string, ok bool) {
	for _, p := range ns {
		if !p.Plain() {
			return nil, false
		}
		names = append(names, p.globs)
	}
	return names, true
}

// Plain returns those patterns that are plain names.
func (ns Namespaces) Plain() (names []string) {
	for _, p := range ns {
		if p.Plain() {
			names = append(names, p.globs)
		}
	}
	return names
}

// Names reports whether one of the patterns is this plain name: then the user chose this very
// namespace. A tenant who may create namespaces can create others that match a pattern.
func (ns Namespaces) Names(name string) bool { return slices.Contains(ns.Plain(), name) }

// RequireFixed returns an error if a pattern is not a plain name. It is for operators
// that must not list namespaces.
func (ns Namespaces) RequireFixed() error {
	for _, p := range ns {
		if !p.Plain() {
			return fmt.Errorf("pattern %q cannot be matched because watching namespaces is disabled: give plain names, or enable it", p)
		}
	}
	return nil
}

// Pattern matches names of namespaces.
type Pattern struct {
	globs string
	re    *regexp.Regexp // nil means that globs is used
}

// Globs returns a pattern from a comma-separated list of globs. The first glob selects
// candidates. Each further glob excludes names if it starts with "!", or else includes
// candidates again: "myapp-*,!myapp-pr-*,myapp-pr-123".
func Globs(text string) Pattern { return Pattern{globs: strings.TrimSpace(text)} }

// Regexp returns a pattern that matches whole names.
func Regexp(re *regexp.Regexp) Pattern {
	return Pattern{re: regexp.MustCompile(`\A(?:` + re.String() + `)\z`)}
}

// String returns the pattern as it was given.
func (p Pattern) String() string {
	if p.re != nil {
		return strings.TrimSuffix(strings.TrimPrefix(p.re.String(), `\A(?:`), `)\z`)
	}
	return p.globs
}

// Plain reports whether the pattern is a plain name.
func (p Pattern) Plain() bool { return p.re == nil && !strings.ContainsAny(p.globs, "!*?,[") }

// Match reports whether the pattern matches the name.
func (p Pattern) Match(name string) bool {
	if p.re != nil {
		return p.re.MatchString(name)
	}
	parts := strings.Split(p.globs, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	if strings.HasPrefix(parts[0], "!") {
		parts = append([]string{"*"}, parts...)
	}
	first := glob(parts[0], name)
	matched := first
	for _, part := range parts[1:] {
		if strings.HasPrefix(part, "!") {
			matched = matched && !glob(strings.TrimLeft(part, "!"), name)
		} else {
			matched = matched || first && glob(part, name)
		}
	}
	return matched
}

// glob matches like a shell. Shells write negated classes as [!a], Go as [^a]. An
// unclosed class is matched literally.
func glob(pattern, name string) bool {
	pattern = strings.ReplaceAll(pattern, `\`, `\\`) // Kopf's patterns have no escapes
	ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	if err != nil {
		ok, err = path.Match(strings.ReplaceAll(pattern, "[", `\[`), name)
	}
	return err == nil && ok
}
