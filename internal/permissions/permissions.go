// Package permissions derives the permissions (RBAC) of an operator from its declarations,
// and compares them with the roles in manifests. Every permission knows its sources: the
// handlers, declarations and settings that need it. The package is pure.
//
// # Flow
//
//  1. [Derive] turns the description of an operator into a [Set].
//  2. [Set.Roles] groups the set into roles, and [Parse] reads roles from manifests.
//  3. [Compare] reports missing and superfluous grants.
package permissions

import (
	"cmp"
	"slices"
	"strings"
)

// Place has the namespaces in which a permission is needed.
type Place int

// The places.
const (
	Served  Place = iota // in all served namespaces, or for cluster-scoped objects
	Own                  // in the namespace of the operator
	Cluster              // in the whole cluster
)

// Account is the holder of a permission.
type Account int

// The accounts.
const (
	Operator  Account = iota // the operator's service account
	Operating                // people and tools that may change the operator's state on objects
)

// Permission allows one verb on one resource.
type Permission struct {
	Account  Account
	Place    Place
	In       string // for Own: another namespace than that of the operator; usually empty
	Verb     string
	Group    string // empty means the core group
	Resource string // plural, with "/status" for a subresource
	Name     string // only for this object; empty means all
	Sources  []Source
}

// Source is a declaration or a setting that needs a permission.
type Source struct {
	Handler string // id; empty means none
	Where   string // file:line of the declaration; empty means a setting
	Setting string // name in gopf.Settings; empty means none
	Without string // the consequence without the permission

	// Failures means that only responses to failures need the permission, such as a lost
	// response to a write, or fallbacks for older API servers. Tests may never use it.
	Failures bool
}

// String names the source in messages.
func (s Source) String() string {
	switch {
	case s.Handler != "" && s.Where != "":
		return "handler " + s.Handler + " at " + s.Where
	case s.Where != "":
		return "gopf.May at " + s.Where
	default:
		return "setting " + s.Setting
	}
}

// String names the permission in messages: "patch databases.example.com/status".
func (p Permission) String() string {
	plural, sub, _ := strings.Cut(p.Resource, "/")
	text := p.Verb + " " + plural
	if p.Group != "" {
		text += "." + p.Group
	}
	if sub != "" {
		text += "/" + sub
	}
	if p.Name != "" {
		text += " named " + p.Name
	}
	switch {
	case p.In != "":
		text += " in the namespace " + p.In
	case p.Place == Own:
		text += " in the namespace of the operator"
	}
	return text
}

// NeededBy names all sources in messages.
func (p Permission) NeededBy() string {
	var all []string
	for _, s := range p.Sources {
		if text := s.String(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

// OnlyFailures reports whether only responses to failures need the permission.
func (p Permission) OnlyFailures() bool {
	return len(p.Sources) > 0 && !slices.ContainsFunc(p.Sources, func(s Source) bool { return !s.Failures })
}

// Set is a list of permissions without duplicates, sorted.
type Set []Permission

// add adds a permission, or its sources to the same permission.
func (all *Set) add(p Permission) {
	at, found := slices.BinarySearchFunc(*all, p, compare)
	if !found {
		*all = slices.Insert(*all, at, p)
		return
	}
	for _, s := range p.Sources {
		if !slices.Contains((*all)[at].Sources, s) {
			(*all)[at].Sources = append((*all)[at].Sources, s)
		}
	}
}

// reduced returns the set without permissions that a broader one includes. The broader one
// gets their sources. everywhere means that the whole cluster is served.
func (all Set) reduced(everywhere bool) (least Set) {
	for _, p := range all {
		at := slices.IndexFunc(all, func(q Permission) bool {
			broader := q.Name == "" && p.Name != "" && (q.Place == p.Place && q.In == p.In) || everywhere && q.Place != Own && p.Place == Own && (q.Name == "" || q.Name == p.Name)
			return broader && q.Account == p.Account && q.Verb == p.Verb && q.Group == p.Group && q.Resource == p.Resource
		})
		if at >= 0 {
			sources := p.Sources
			p = all[at]
			p.Sources = sources
		}
		least.add(p)
	}
	return least
}

// compare orders permissions: custom resources and workloads first, verbs in the usual order.
func compare(a, b Permission) int {
	return cmp.Or(
		cmp.Compare(a.Account, b.Account), cmp.Compare(a.Place, b.Place), cmp.Compare(a.In, b.In), cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name, b.Name), cmp.Compare(verbOrder(a.Verb), verbOrder(b.Verb)), cmp.Compare(a.Verb, b.Verb),
	)
}

func verbOrder(verb string) int {
	order := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	if at := slices.Index(order, verb); at >= 0 {
		return at
	}
	return len(order)
}
