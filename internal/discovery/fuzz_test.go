package discovery

import (
	"strings"
	"testing"
)

// Tenants choose the names of namespaces.
func FuzzGlobs(f *testing.F) {
	f.Add("a*,!ab*,[x-z]?", "abc")
	f.Add("*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	f.Add("[", "[")
	f.Add(`\0`, "0")
	f.Add("0  ", "0") // spaces around names do not count
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p := Globs(pattern)
		if p.Match(name) && p.Plain() && strings.TrimSpace(pattern) != name {
			t.Fatalf("%q matches %q", pattern, name)
		}
	})
}
