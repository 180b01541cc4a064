package gopftest

import (
	"slices"
	"time"
)

// Match selects requests for [Cluster.Fault] and [Cluster.Count]. Each method returns a
// copy that matches fewer requests. Start with [Requests] or [Writes].
type Match struct {
	conditions []func(Request) bool
	first      int           // first of the matching requests, counted from 1; 0: all
	last       int           // last of them; 0: no limit
	during     time.Duration // time since the fault was set; 0: no limit
}

// Requests matches requests by verb (get, list, watch, create, update, patch, delete,
// deletecollection) and by the plural name of the resource. "" matches all.
func Requests(verb, resource string) Match {
	return Match{}.Where(func(r Request) bool {
		return (verb == "" || verb == r.Verb) && (resource == "" || resource == r.Resource)
	})
}

// Writes matches requests that change objects of the given resources (plural names). No
// arguments mean all resources.
func Writes(resources ...string) Match {
	return Match{}.Where(func(r Request) bool {
		return r.Write() && (len(resources) == 0 || slices.Contains(resources, r.Resource))
	})
}

// Where adds a condition on the request.
func (m Match) Where(condition func(Request) bool) Match {
	m.conditions = append(slices.Clone(m.conditions), condition)
	return m
}

// Subresource keeps the requests to a subresource. "" means the object itself.
func (m Match) Subresource(name string) Match {
	return m.Where(func(r Request) bool { return r.Subresource == name })
}

// Object keeps the requests about one object. If name is "", it keeps those in the
// namespace.
func (m Match) Object(namespace, name string) Match {
	return m.Where(func(r Request) bool { return r.Namespace == namespace && (name == "" || r.Name == name) })
}

// Nth keeps only the n-th matching request, counted from 1 since the fault was set.
func (m Match) Nth(n int) Match { m.first, m.last = n, n; return m }

// First keeps the first n matching requests.
func (m Match) First(n int) Match { m.first, m.last = 1, n; return m }

// From keeps the n-th matching request and all later ones.
func (m Match) From(n int) Match { m.first, m.last = n, 0; return m }

// During keeps the requests within d after the fault is set.
func (m Match) During(d time.Duration) Match { m.during = d; return m }

// fits reports whether the request meets all conditions.
func (m Match) fits(r Request) bool {
	return !slices.ContainsFunc(m.conditions, func(ok func(Request) bool) bool { return !ok(r) })
}

// keeps reports whether the n-th matching request is selected.
func (m Match) keeps(n int) bool { return n >= m.first && (m.last == 0 || n <= m.last) }

// Count returns how many of the requests so far match.
func (c *Cluster) Count(m Match) int {
	seen, kept := 0, 0
	for _, r := range c.Requests() {
		if m.fits(r) {
			if seen++; m.keeps(seen) {
				kept++
			}
		}
	}
	return kept
}
