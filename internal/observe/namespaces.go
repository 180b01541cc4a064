package observe

import (
	"path"
	"strings"
)

// Namespaces are patterns of the namespaces to be served; see [Pattern]. None
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

// Fixed are the patterns if all of them are plain names, so that there is no
// need to know which namespaces exist.
func (ns Namespaces) Fixed() (names []string, ok bool) {
	for _, p := range ns {
		if !p.Plain() {
			return nil, false
		}
		names = append(names, string(p))
	}
	return names, true
}

// Pattern is a comma-separated list of globs. The first one decides what can
// match at all; those that follow take out names, if they begin with "!", or
// bring them back: "myapp-*,!myapp-pr-*,myapp-pr-123".
type Pattern string

// Plain tells whether the pattern is just a name.
func (p Pattern) Plain() bool { return !strings.ContainsAny(string(p), "!*?,") }

// Match tells whether the name fits.
func (p Pattern) Match(name string) bool {
	parts := strings.Split(string(p), ",")
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
