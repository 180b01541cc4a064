package observe

import "testing"

// Tenants choose the names of namespaces.
func FuzzGlobs(f *testing.F) {
	f.Add("a*,!ab*,[x-z]?", "abc")
	f.Add("*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	f.Add("[", "[")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p := Globs(pattern)
		if p.Match(name) && p.Plain() && pattern != name {
			t.Fatalf("%q matches %q", pattern, name)
		}
	})
}
