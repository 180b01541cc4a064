package kube

import (
	"fmt"
	"strings"

	"gopf.dev/gopf/kind"
)

// Target is the endpoint of a request: a collection if Name is empty, else an object or
// one of its subresources.
type Target struct {
	Info        kind.Info
	Namespace   string // empty for cluster-scoped resources and for all namespaces
	Name        string
	Subresource string
}

// Path returns the path of the endpoint below the server's URL.
func (t Target) Path() (string, error) {
	switch {
	case t.Info.Plural == "" || t.Info.Version == "":
		return "", fmt.Errorf("resource %q has no plural name or no version", t.Info)
	case t.Subresource != "" && t.Name == "":
		return "", fmt.Errorf("subresource %q of %s requires an object name", t.Subresource, t.Info)
	case t.Namespace != "" && !t.Info.Namespaced:
		return "", fmt.Errorf("%s is cluster-scoped, but the namespace %q is given", t.Info, t.Namespace)
	case t.Namespace == "" && t.Name != "" && t.Info.Namespaced:
		return "", fmt.Errorf("%s is namespaced, but no namespace is given for the name %q", t.Info, t.Name)
	}
	prefix := "apis"
	if t.Info.Group == "" && t.Info.Version == "v1" {
		prefix = "api"
	}
	segments := []string{prefix, t.Info.Group, t.Info.Version, "", "", t.Info.Plural, t.Name, t.Subresource}
	if t.Namespace != "" {
		segments[3], segments[4] = "namespaces", t.Namespace
	}
	var path strings.Builder
	for _, s := range segments {
		if s == "" {
			continue
		}
		// Names may come from user data and must not lead to another path.
		if s == "." || s == ".." || strings.ContainsAny(s, "/%") {
			return "", fmt.Errorf("%q cannot be a part of the URL of %s", s, t.Info)
		}
		path.WriteByte('/')
		path.WriteString(s)
	}
	return path.String(), nil
}

// String returns the endpoint for messages: "pods.v1 default/web/status".
func (t Target) String() string {
	s := t.Info.String()
	switch {
	case t.Name != "" && t.Namespace != "":
		s += " " + t.Namespace + "/" + t.Name
	case t.Name != "":
		s += " " + t.Name
	case t.Namespace != "":
		s += " in " + t.Namespace
	}
	if t.Subresource != "" {
		s += "/" + t.Subresource
	}
	return s
}
