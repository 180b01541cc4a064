package rbac

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Subject is the recipient of permissions, as in a role binding.
type Subject struct {
	Kind      string // "ServiceAccount" or "User"; empty if unknown
	Namespace string // of a ServiceAccount
	Name      string
}

// SubjectOf returns the subject with the given user name.
func SubjectOf(username string) Subject {
	if rest, ok := strings.CutPrefix(username, "system:serviceaccount:"); ok {
		if namespace, name, ok := strings.Cut(rest, ":"); ok {
			return Subject{"ServiceAccount", namespace, name}
		}
	}
	if username == "" {
		return Subject{}
	}
	return Subject{Kind: "User", Name: username}
}

// Rules returns manifests that grant missing permissions, as YAML: a role and a binding
// for the whole cluster, and for each namespace. It is pure.
//
// The names of the roles depend on their content. Applying a later manifest therefore
// keeps the permissions that were granted before.
func Rules(missing []Missing, to Subject) string {
	var wide []Missing
	narrow := map[string][]Missing{}
	for _, m := range missing {
		if len(m.Namespaces) == 0 {
			wide = append(wide, m)
		}
		for _, namespace := range m.Namespaces {
			narrow[namespace] = append(narrow[namespace], m)
		}
	}
	var documents []string
	if len(wide) > 0 {
		documents = append(documents, role("ClusterRole", "", wide, to)...)
	}
	for _, namespace := range slices.Sorted(maps.Keys(narrow)) {
		documents = append(documents, role("Role", namespace, narrow[namespace], to)...)
	}
	return strings.Join(documents, "---\n")
}

// role returns a role and its binding.
func role(kind, namespace string, missing []Missing, to Subject) []string {
	text := rules(missing) + subject(to)
	name := fmt.Sprintf("gopf-%.4x", sha256.Sum256([]byte(text)))
	head := func(kind string) string {
		in := ""
		if namespace != "" {
			in = fmt.Sprintf(", namespace: %q", namespace)
		}
		return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata: {name: %q%s}\n", kind, name, in)
	}
	return []string{
		head(kind) + "rules:\n" + rules(missing),
		head(kind+"Binding") +
			fmt.Sprintf("roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %q}\n", kind, name) +
			"subjects:\n" + subject(to),
	}
}

// rules merges resources with the same verbs, and verbs of the same resource.
func rules(missing []Missing) string {
	type resource struct{ group, name, object string }
	verbs := map[resource][]string{}
	var order []resource
	for _, m := range missing {
		r := resource{m.Group, m.Resource, m.Name}
		if verbs[r] == nil {
			order = append(order, r)
		}
		verbs[r] = union(verbs[r], m.Verbs)
	}
	type rule struct{ group, object, verbs string }
	resources := map[rule][]string{}
	var rules []rule
	for _, r := range order {
		to := rule{r.group, r.object, list(verbs[r])}
		if resources[to] == nil {
			rules = append(rules, to)
		}
		resources[to] = append(resources[to], r.name)
	}
	var text strings.Builder
	for _, r := range rules {
		names := ""
		if r.object != "" {
			names = "  resourceNames: " + list([]string{r.object}) + "\n"
		}
		fmt.Fprintf(&text, "- apiGroups: %s\n  resources: %s\n%s  verbs: %s\n", list([]string{r.group}), list(resources[r]), names, r.verbs)
	}
	return text.String()
}

func subject(s Subject) string {
	switch s.Kind {
	case "ServiceAccount":
		return fmt.Sprintf("- {kind: ServiceAccount, namespace: %q, name: %q}\n", s.Namespace, s.Name)
	case "":
		return "- {kind: ServiceAccount, namespace: \"\", name: \"\"} # fill in the operator's service account\n"
	}
	return fmt.Sprintf("- {kind: %s, apiGroup: rbac.authorization.k8s.io, name: %q}\n", s.Kind, s.Name)
}

// list formats strings as a one-line list, whose JSON form is valid YAML.
func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = fmt.Sprintf("%q", t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
