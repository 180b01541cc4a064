package serve

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/serve/spec"
)

// identified checks that the template of a child has an API version, a kind and a name, and
// that its handler owns the kind. Parts with expressions are known only at run time.
func (s *set) identified(h *spec.Handler, c *spec.Child, template any) {
	at := c.Template.Pos
	if file, ok := c.Template.Value.(string); ok {
		at = spec.Pos{File: path.Join(s.folder, file), Line: 1}
	}
	fields, _ := template.(map[string]any)
	missing := false
	for _, key := range []string{"apiVersion", "kind"} {
		if text, ok := fields[key].(string); !ok || text == "" {
			s.problem(at, "child %q has no %s; add it to the template", c.ID, key)
			missing = true
		}
	}
	if !named(fields) {
		s.problem(at, "child %q has no name; add metadata.name to the template, such as ${object.metadata.name}", c.ID)
	}
	if missing || h.Reconcile == nil || len(h.Reconcile.Owns) == 0 {
		return // reported before
	}
	apiVersion, kindName := fields["apiVersion"].(string), fields["kind"].(string)
	switch ownership(h.Reconcile.Owns, apiVersion, kindName) {
	case notOwned:
		s.problem(at, "child %q is a %s of %s, which is not in reconcile.owns; add its resource there", c.ID, kindName, apiVersion)
	case maybeOwned:
		s.problems.Warn(at, "child %q is a %s of %s, which does not look like one of the resources in reconcile.owns (%s); add its resource there, unless it is one of them",
			c.ID, kindName, apiVersion, strings.Join(h.Reconcile.Owns, ", "))
	}
}

// named reports whether the object has a name, or can get one from an expression.
func named(object map[string]any) bool {
	switch metadata := object["metadata"].(type) {
	case string:
		return strings.Contains(metadata, "${")
	case map[string]any:
		name, ok := metadata["name"].(string)
		return ok && name != ""
	}
	return false
}

type owned int

const (
	isOwned owned = iota
	maybeOwned
	notOwned
)

// ownership reports whether a kind is one of the resources. A file has no plural for a kind,
// so the regular forms are tried. The plurals of built-in kinds are regular. A resource
// without a group or a version, such as a short name, may be any kind.
func ownership(resources []string, apiVersion, kindName string) owned {
	of, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || strings.Contains(apiVersion+kindName, "${") {
		return isOwned // an expression, or a mistake that the API server reports
	}
	result := notOwned
	for _, name := range resources {
		selector, err := kind.Parse(name)
		if err != nil || !strings.Contains(name, "/") {
			return isOwned
		}
		for _, plural := range plurals(kindName) {
			info := kind.Info{Group: of.Group, Version: of.Version, Kind: kindName, Singular: strings.ToLower(kindName), Plural: plural, Preferred: true}
			if selector.Matches(info) {
				return isOwned
			}
		}
		if path.Dir(name) == apiVersion && !builtIn(of.Group) {
			result = maybeOwned
		}
	}
	return result
}

// plurals returns the regular plurals of a kind.
func plurals(kindName string) []string {
	name := strings.ToLower(kindName)
	forms := []string{name, name + "s", name + "es"}
	if stem, ok := strings.CutSuffix(name, "y"); ok {
		forms = append(forms, stem+"ies")
	}
	return forms
}

// builtIn reports whether the group belongs to Kubernetes itself.
func builtIn(group string) bool {
	return !strings.Contains(group, ".") || slices.Contains([]string{
		"networking.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io", "scheduling.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
		"admissionregistration.k8s.io", "apiextensions.k8s.io",
	}, group)
}
