package gopftest

import (
	"slices"
	"time"
)

// Match chooses requests, for [Cluster.Fault] and [Cluster.Count]. Every method
// returns a narrower one.
type Match struct {
	conditions []func(Request) bool
	first      int           // the first of those that fit, counted from 1; 0: all
	last       int           // 0: no last one
	during     time.Duration // since the fault was set; 0: always
}

// Requests matches requests by verb (get, list, watch, create, update, patch,
// delete, deletecollection) and resource (the plural); "" is any.
func Requests(verb, resource string) Match {
	return Match{}.Where(func(r Request) bool {
		return (verb == "" || verb == r.Verb) && (resource == "" || resource == r.Resource)
	})
}

// Writes matches requests that are to change something, of the given resources
// (plurals) or of all.
func Writes(resources ...string) Match {
	return Match{}.Where(func(r Request) bool {
		return r.Write() && (len(resources) == 0 || slices.Contains(resources, r.Resource))
	})
}

// Where adds a condition.
func (m Match) Where(condition func(Request) bool) Match {
	m.conditions = append(slices.Clone(m.conditions), condition)
	return m
}

// Subresource keeps the requests of a subresource; "" is the object itself.
func (m Match) Subresource(name string) Match {
	return m.Where(func(r Request) bool { return r.Subresource == name })
}

// Object keeps the requests about one object, or about one namespace if the name
// is "".
func (m Match) Object(namespace, name string) Match {
	return m.Where(func(r Request) bool { return r.Namespace == namespace && (name == "" || r.Name == name) })
}

// Nth keeps only the n-th of the requests, counted from 1 and from when the fault
// is set.
func (m Match) Nth(n int) Match { m.first, m.last = n, n; return m }

// First keeps the first n of the requests.
func (m Match) First(n int) Match { m.first, m.last = 1, n; return m }

// From keeps the n-th of the requests and all that follow.
func (m Match) From(n int) Match { m.first, m.last = n, 0; return m }

// During keeps the requests that come within that time after the fault is set.
func (m Match) During(d time.Duration) Match { m.during = d; return m }

// fits says whether the request is among those to be counted.
func (m Match) fits(r Request) bool {
	return !slices.ContainsFunc(m.conditions, func(ok func(Request) bool) bool { return !ok(r) })
}

// keeps says whether the n-th that fits is meant.
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
