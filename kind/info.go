// Package kind names kinds of Kubernetes resources: the selectors an operator
// declares, and the resources a cluster turns out to serve.
package kind

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Info is a resource as the cluster describes it in its discovery.
//
// Two Infos are the same resource if their [Info.GVR] is the same, whatever
// else was learnt about them.
type Info struct {
	Group      string // "" for the core group
	Version    string
	Plural     string // as in URLs: "pods"
	Kind       string // as in manifests: "Pod"
	Singular   string // "pod"
	ShortNames []string
	Categories []string

	Namespaced   bool
	Preferred    bool     // whether Version is the one its group prefers
	Subresources []string // "status", "scale", …
	Verbs        []string // "list", "watch", "patch", …
}

// GVR is the resource's identity.
func (i Info) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: i.Group, Version: i.Version, Resource: i.Plural}
}

// APIVersion is the value of the field of the same name in manifests.
func (i Info) APIVersion() string {
	return schema.GroupVersion{Group: i.Group, Version: i.Version}.String()
}

// HasStatus tells whether the status is written through an endpoint of its own.
func (i Info) HasStatus() bool { return slices.Contains(i.Subresources, "status") }

// Can tells whether the resource serves the verb.
func (i Info) Can(verb string) bool { return slices.Contains(i.Verbs, verb) }

// String is the resource's short name in logs: "pods.v1",
// "kopfexamples.v1.kopf.dev".
func (i Info) String() string {
	return strings.Trim(i.Plural+"."+i.Version+"."+i.Group, ".")
}

// isEvent tells the two kinds of Kubernetes events from all others: they are
// so many, and so often caused by operators themselves, that only selectors
// naming them get them.
func (i Info) isEvent() bool {
	return i.Plural == "events" && (i.Group == "" && i.Version == "v1" || i.Group == "events.k8s.io")
}
