package observe

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Namespaces are patterns of the namespaces to be served; see [Globs]. None
// at all stands for the whole cluster.
type Namespaces []Pattern

// Match tells whether a namespace is to be served.
func (ns Namespaces) Match(name string) bool {
	for _, p := range ns {
		if p.Match(name) {
			return true
		}
	}
	return false
}

// String is how people write them.
func (ns Namespaces) String() string {
	texts := make([]string, len(ns))
	for i, p := range ns {
		texts[i] = p.String()
	}
	return strings.Join(texts, " or ")
}

// Fixed are the patterns if all of them are plain names, so that there is no
// need to know which namespaces exist.
func (ns Namespaces) Fixed() (names []string, ok bool) {
	for _, p := range ns {
		if !p.Plain() {
			return nil, false
		}
		names = append(names, p.globs)
	}
	return names, true
}

// Plain are those of the patterns that are just names.
func (ns Namespaces) Plain() (names []string) {
	for _, p := range ns {
		if p.Plain() {
			names = append(names, p.globs)
		}
	}
	return names
}

// RequireFixed is an error if some of the patterns are more than plain names,
// for operators that must not look which namespaces there are.
func (ns Namespaces) RequireFixed() error {
	for _, p := range ns {
		if !p.Plain() {
			return fmt.Errorf("the pattern %q cannot be matched, because the observation of namespaces is disabled: give plain names, or do not disable it", p)
		}
	}
	return nil
}

// Pattern tells which namespaces are meant.
type Pattern struct {
	globs string
	re    *regexp.Regexp // instead of globs, if there is one
}

// Globs is a comma-separated list of globs. The first one decides what can
// match at all; those that follow take out names, if they begin with "!", or
// bring them back: "myapp-*,!myapp-pr-*,myapp-pr-123".
func Globs(text string) Pattern { return Pattern{globs: text} }

// Regexp is a regular expression that whole names match.
func Regexp(re *regexp.Regexp) Pattern {
	return Pattern{re: regexp.MustCompile(`\A(?:` + re.String() + `)\z`)}
}

// String is the pattern as it was given.
func (p Pattern) String() string {
	if p.re != nil {
		return strings.TrimSuffix(strings.TrimPrefix(p.re.String(), `\A(?:`), `)\z`)
	}
	return p.globs
}

// Plain tells whether the pattern is just a name.
func (p Pattern) Plain() bool { return p.re == nil && !strings.ContainsAny(p.globs, "!*?,[") }

// Match tells whether the name fits.
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

// glob matches as a shell does. Negated classes are written [!a] there and [^a]
// in Go; a class that is not closed is taken literally.
func glob(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	if err != nil {
		ok, err = path.Match(strings.ReplaceAll(pattern, "[", `\[`), name)
	}
	return err == nil && ok
}
