// Package kind names kinds of Kubernetes resources: the selectors that an operator declares,
// and the resources that a cluster serves.
package kind

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Info describes a resource according to the discovery of the cluster.
//
// Two Infos are the same resource if their [Info.GVR] is equal, whatever their other fields.
type Info struct {
	Group      string // empty means the core group
	Version    string
	Plural     string // as in URLs: "pods"
	Kind       string // as in manifests: "Pod"
	Singular   string // "pod"
	ShortNames []string
	Categories []string

	Namespaced   bool
	Preferred    bool     // Version is the preferred version of the group
	Subresources []string // "status", "scale", …
	Verbs        []string // "list", "watch", "patch", …
}

// GVR returns the identity of the resource.
func (i Info) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: i.Group, Version: i.Version, Resource: i.Plural}
}

// APIVersion returns the value of the field apiVersion in manifests.
func (i Info) APIVersion() string {
	return schema.GroupVersion{Group: i.Group, Version: i.Version}.String()
}

// HasStatus reports whether the resource has a status subresource.
func (i Info) HasStatus() bool { return slices.Contains(i.Subresources, "status") }

// Can reports whether the resource supports the verb.
func (i Info) Can(verb string) bool { return slices.Contains(i.Verbs, verb) }

// String returns the name of the resource in logs: "pods.v1", "kopfexamples.v1.kopf.dev".
func (i Info) String() string {
	return strings.Trim(i.Plural+"."+i.Version+"."+i.Group, ".")
}

// isEvent reports whether the resource is one of the two kinds of Kubernetes events. There
// are many of them, often caused by operators, so only selectors that name them match.
func (i Info) isEvent() bool {
	return i.Plural == "events" && (i.Group == "" && i.Version == "v1" || i.Group == "events.k8s.io")
}
