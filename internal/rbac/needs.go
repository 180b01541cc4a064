// Package rbac detects missing permissions (RBAC) of the operator and prints
// manifests that grant them.
//
// # Flow
//
//  1. [Needs] returns the permissions that the served resources require.
//  2. A [Reviewer] sends access reviews: for the whole cluster first, and for
//     single namespaces only where that is denied.
//  3. Each missing permission is logged once, followed by manifests that grant
//     all of them; see [Rules].
//  4. While permissions are missing, the reviews are repeated with growing
//     pauses. Granted permissions are logged and reported.
//
// # Guarantees
//
// No other part of the operator waits for a review: it only explains errors that
// requests get anyway. Failing access reviews do no harm. The number of requests per
// round is limited, and only a few are in flight at a time.
package rbac

import (
	"slices"

	"gopf.dev/gopf/kind"
)

// Need is a set of required permissions for one resource.
type Need struct {
	Info        kind.Info
	Subresource string
	Name        string // only for this object; empty means all
	Verbs       []string
	In          string   // only in this namespace; empty means all served ones
	By          []string // ids of handlers, or parts of the framework, that need it
	Without     string   // the consequence without it, for the log
}

// Use describes how handlers use a resource.
type Use struct {
	Info  kind.Info
	Look  []string // ids of handlers that only read
	Write []string // ids of handlers whose objects are patched: changes, daemons, timers
}

// Framework selects the optional tasks of the framework.
type Framework struct {
	Definitions bool // watches CRDs
	Namespaces  bool // watches namespaces
	Posting     bool // posts Kubernetes events

	// PostingIn is the namespace for events about cluster-scoped objects. It is empty
	// for operators that serve the whole cluster.
	PostingIn string
}

var (
	definitions = kind.Info{Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions"}
	namespaces  = kind.Info{Version: "v1", Plural: "namespaces"}
	events      = kind.Info{Version: "v1", Plural: "events", Namespaced: true}
	leases      = kind.Info{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Namespaced: true}
)

// Needs returns the permissions that the uses and the framework require. It is pure.
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
			Without: "objects wait because the results of their handlers cannot be written"}
		all.add(writing)
		if u.Info.HasStatus() {
			writing.Subresource = "status"
			all.add(writing)
		}
		if u.Info.Can("get") {
			all.add(Need{Info: u.Info, Verbs: []string{"get"}, By: u.Write,
				Without: "objects wait if they are large, or if the response to a write is lost"})
		}
	}
	if f.Definitions {
		all.add(Need{Info: definitions, Verbs: []string{"list", "watch"}, By: []string{"the framework"},
			Without: "new resources are discovered within a minute instead of at once"})
	}
	if f.Namespaces {
		all.add(Need{Info: namespaces, Verbs: []string{"list", "watch"}, By: []string{"the framework"},
			Without: "namespace patterns match nothing, and only namespaces given by plain names are served"})
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

// Peering returns the permissions to take part in a peering with the given resource.
func Peering(info kind.Info) Need {
	return Need{Info: info, Verbs: []string{"list", "watch", "patch"}, By: []string{"peering"},
		Without: "other operators are not seen and do not see this one"}
}

// Children returns the permissions to maintain children of the kind.
func Children(info kind.Info, handler string) Need {
	return Need{Info: info, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}, By: []string{handler},
		Without: "the children of this kind are not maintained"}
}

// Watched returns the permissions to call a reconcile handler after changes of objects of
// the kind, which are no children.
func Watched(info kind.Info, handler string) Need {
	return Need{Info: info, Verbs: []string{"get", "list", "watch"}, By: []string{handler},
		Without: "changes of objects of this kind do not call the handler"}
}

// Lease returns the permissions to hold a lease in the namespace. RBAC cannot limit create to
// a name, and standby replicas watch all leases of the namespace.
func Lease(namespace, name string) []Need {
	all := Need{Info: leases, Verbs: []string{"list", "watch", "create"}, In: namespace, By: []string{"the lease"},
		Without: "the operator never becomes the leader"}
	one := all
	one.Verbs, one.Name = []string{"get", "patch"}, name
	return []Need{all, one}
}

// EndpointReviews returns the permissions to review requests to the operator's own endpoints.
func EndpointReviews() []Need {
	tokens := Need{Info: TokenReviews, Verbs: []string{"create"}, By: []string{"the framework"},
		Without: "all requests to the protected endpoints are refused"}
	subjects := tokens
	subjects.Info = SubjectReviews
	return []Need{tokens, subjects}
}

// needs is a list without duplicates.
type needs []Need

// add merges needs that differ only in By or in the API version, because permissions
// are not versioned.
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
