package kube

import (
	"fmt"
	"strings"

	"gopf.dev/gopf/kind"
)

// Target is the endpoint that a request is about: a collection of objects if
// it has no name, else an object or a subresource of it.
type Target struct {
	Info        kind.Info
	Namespace   string // "" for cluster-scoped resources and for all namespaces
	Name        string
	Subresource string
}

// Path is the path of the endpoint below the server's URL.
func (t Target) Path() (string, error) {
	switch {
	case t.Info.Plural == "" || t.Info.Version == "":
		return "", fmt.Errorf("the resource %q has no plural name or no version", t.Info)
	case t.Subresource != "" && t.Name == "":
		return "", fmt.Errorf("the subresource %q of %s is asked for without a name", t.Subresource, t.Info)
	case t.Namespace != "" && !t.Info.Namespaced:
		return "", fmt.Errorf("%s is cluster-scoped, it has nothing in the namespace %q", t.Info, t.Namespace)
	case t.Namespace == "" && t.Name != "" && t.Info.Namespaced:
		return "", fmt.Errorf("%s is namespaced, a namespace is needed for the name %q", t.Info, t.Name)
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
		// Names may come from users' data: they must not lead elsewhere.
		if s == "." || s == ".." || strings.ContainsAny(s, "/%") {
			return "", fmt.Errorf("%q cannot be a part of the URL of %s", s, t.Info)
		}
		path.WriteByte('/')
		path.WriteString(s)
	}
	return path.String(), nil
}

// String names the endpoint in messages: "pods.v1 default/web/status".
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
