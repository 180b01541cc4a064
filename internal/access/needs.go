// Package access finds out what the operator is not allowed to do and says
// how to allow it.
//
// # Flow
//
//  1. [Needs] says what must be allowed for what is served.
//  2. A [Reviewer] asks the cluster: for the whole cluster first, and for each
//     namespace only where that is denied.
//  3. What is missing is logged, each permission once, and after it manifests
//     that grant all of it; see [Rules].
//  4. As long as something is missing, it is asked again with growing pauses;
//     what was granted is logged and reported.
//
// # Guarantees
//
// Nothing waits for a review: it only explains what requests run into anyway.
// A cluster that does not answer reviews does no harm. The requests of a round
// are bounded in number, and only a few are under way at a time.
package access

import (
	"slices"

	"gopf.dev/gopf/kind"
)

// Need is something that must be allowed.
type Need struct {
	Info        kind.Info
	Subresource string
	Name        string // the only object that is meant; "" is all
	Verbs       []string
	In          string   // the only namespace where; "" is wherever the operator serves
	By          []string // who needs it: ids of handlers, or parts of the framework
	Without     string   // what becomes of them without it, for the log
}

// Use is what handlers do with a resource.
type Use struct {
	Info  kind.Info
	Look  []string // ids of those that look at objects: all of them
	Write []string // ids of those that are for changes or in the background: objects are written to
}

// Framework is what the operator does besides running handlers.
type Framework struct {
	Definitions bool // follows which custom resources there are
	Namespaces  bool // follows which namespaces there are
	Posting     bool // posts events about objects

	// PostingIn is the namespace of events about cluster-scoped objects, for
	// operators that do not serve the whole cluster; "" for those that do.
	PostingIn string
}

var (
	definitions = kind.Info{Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions"}
	namespaces  = kind.Info{Version: "v1", Plural: "namespaces"}
	events      = kind.Info{Version: "v1", Plural: "events", Namespaced: true}
	leases      = kind.Info{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Namespaced: true}
)

// Needs is what must be allowed for the uses of resources and for the
// framework itself. It is pure.
func Needs(uses []Use, f Framework) []Need {
	var all needs
	clusterScoped := false
	for _, u := range uses {
		clusterScoped = clusterScoped || !u.Info.Namespaced
		all.add(Need{Info: u.Info, Verbs: []string{"list", "watch"}, By: slices.Concat(u.Look, u.Write),
			Without: "these handlers are not called"})
		if len(u.Write) == 0 {
			continue
		}
		writing := Need{Info: u.Info, Verbs: []string{"patch"}, By: u.Write,
			Without: "objects wait, since what handlers did to them cannot be written"}
		all.add(writing)
		if u.Info.HasStatus() {
			writing.Subresource = "status"
			all.add(writing)
		}
		if u.Info.Can("get") {
			all.add(Need{Info: u.Info, Verbs: []string{"get"}, By: u.Write,
				Without: "objects wait after the answer to a write got lost"})
		}
	}
	if f.Definitions {
		all.add(Need{Info: definitions, Verbs: []string{"list", "watch"}, By: []string{"the framework"},
			Without: "new kinds of objects are noticed within a minute instead of at once"})
	}
	if f.Namespaces {
		all.add(Need{Info: namespaces, Verbs: []string{"list", "watch"}, By: []string{"the framework"},
			Without: "patterns of namespaces match nothing, and only namespaces given by plain names are served"})
	}
	if f.Posting {
		posting := Need{Info: events, Verbs: []string{"create"}, By: []string{"the framework"}, Without: "no events are posted"}
		all.add(posting)
		if clusterScoped && f.PostingIn != "" {
			posting.In = f.PostingIn
			all.add(posting)
		}
	}
	return all
}

// Peering is what must be allowed to see the other operators and to be seen by
// them, with the resource of the peering objects.
func Peering(info kind.Info) Need {
	return Need{Info: info, Verbs: []string{"list", "watch", "patch"}, By: []string{"peering"},
		Without: "other operators are not seen and do not see this one"}
}

// Lease is what must be allowed to hold a lease in the namespace.
func Lease(namespace string) Need {
	return Need{Info: leases, Verbs: []string{"get", "create", "update", "patch", "watch"}, In: namespace, By: []string{"the lease"},
		Without: "the operator stands by for ever"}
}

// needs are different ones.
type needs []Need

// add joins needs that differ only in who has them: permissions know no
// versions.
func (all *needs) add(n Need) {
	for i, other := range *all {
		if other.Info.Group == n.Info.Group && other.Info.Plural == n.Info.Plural && other.Subresource == n.Subresource && other.Name == n.Name &&
			other.In == n.In && other.Without == n.Without && slices.Equal(other.Verbs, n.Verbs) {
			(*all)[i].By = union(other.By, n.By)
			return
		}
	}
	n.By = union(nil, n.By)
	*all = append(*all, n)
}

func union(a, b []string) []string {
	both := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(both, s) {
			both = append(both, s)
		}
	}
	return both
}
