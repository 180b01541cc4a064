package permissions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Grant is one verb on one resource that a role in a manifest grants.
type Grant struct {
	Account   Account
	Verb      string
	Group     string
	Resource  string
	Name      string // only for this object; empty means all
	Namespace string // of the role; empty means the whole cluster
	Role      string // "ClusterRole NAME" or "Role NAMESPACE/NAME"
}

// String names the grant in messages.
func (g Grant) String() string {
	p := Permission{Verb: g.Verb, Group: g.Group, Resource: g.Resource, Name: g.Name}
	return fmt.Sprintf("%s (%s)", p, g.Role)
}

// Target has the names in the manifests.
type Target struct {
	Name       string   // of the service account and the roles
	Namespace  string   // of the operator
	Namespaces []string // the served ones; empty means the whole cluster
}

// OperateRole returns the name of the role for people who change the operator's state.
func (t Target) OperateRole() string { return t.Name + "-operate" }

// Parse reads the grants of the operator's account, and of the role for people, from
// manifests. Other objects in the manifests are ignored.
func Parse(manifests []byte, t Target) ([]Grant, error) {
	roles := map[string]rbacv1.ClusterRole{} // by "KIND NAMESPACE/NAME"
	var bindings []rbacv1.RoleBinding
	for i, text := range strings.Split("\n"+string(manifests), "\n---") {
		var head struct {
			Kind string `json:"kind"`
			rbacv1.RoleBinding
			Rules []rbacv1.PolicyRule `json:"rules"`
		}
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			return nil, fmt.Errorf("read the roles: document %d: %w", i+1, err)
		}
		switch head.Kind {
		case "ClusterRole", "Role":
			roles[key(head.Kind, head.Namespace, head.Name)] = rbacv1.ClusterRole{ObjectMeta: head.ObjectMeta, Rules: head.Rules}
		case "ClusterRoleBinding", "RoleBinding":
			bindings = append(bindings, head.RoleBinding)
		}
	}
	var all []Grant
	for _, b := range bindings {
		if !slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == "ServiceAccount" && s.Name == t.Name && s.Namespace == t.Namespace
		}) {
			continue
		}
		namespace := ""
		if b.RoleRef.Kind == "Role" {
			namespace = b.Namespace
		}
		name := key(b.RoleRef.Kind, namespace, b.RoleRef.Name)
		all = append(all, grants(roles[name].Rules, Grant{Namespace: b.Namespace, Role: name})...)
	}
	operate := key("ClusterRole", "", t.OperateRole())
	return append(all, grants(roles[operate].Rules, Grant{Account: Operating, Role: operate})...), nil
}

func key(kind, namespace, name string) string {
	if namespace != "" {
		return kind + " " + namespace + "/" + name
	}
	return kind + " " + name
}

// grants splits rules into single grants.
func grants(rules []rbacv1.PolicyRule, like Grant) (all []Grant) {
	for _, r := range rules {
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, name := range names {
					for _, verb := range r.Verbs {
						g := like
						g.Group, g.Resource, g.Name, g.Verb = group, resource, name, verb
						all = append(all, g)
					}
				}
			}
		}
	}
	return all
}

// covers reports whether the grant permits the verb on the resource.
func (g Grant) covers(p Permission) bool {
	is := func(granted, needed string) bool { return granted == needed || granted == "*" }
	return g.Account == p.Account && is(g.Verb, p.Verb) && is(g.Group, p.Group) && is(g.Resource, p.Resource) && (g.Name == "" || g.Name == p.Name)
}

// places returns the namespaces where a permission is needed. An empty name means the whole
// cluster.
func (t Target) places(p Permission) []string {
	switch {
	case p.Place == Own:
		return []string{cmp.Or(p.In, t.Namespace)}
	case p.Place == Served && len(t.Namespaces) > 0:
		return t.Namespaces
	}
	return []string{""}
}

// Compare returns the permissions of the set that no grant covers, and the grants that no
// permission of the set needs. It is pure.
func Compare(set Set, granted []Grant, t Target) (missing Set, unused []Grant) {
	needed := make([]bool, len(granted))
	for _, p := range set {
		covered := true
		for _, place := range t.places(p) {
			found := false
			for i, g := range granted {
				if g.covers(p) && (g.Namespace == "" || g.Namespace == place) {
					found, needed[i] = true, true
				}
			}
			covered = covered && found
		}
		if !covered {
			missing = append(missing, p)
		}
	}
	for i, g := range granted {
		// A wildcard grants more than any permission of the set needs.
		if !needed[i] || g.Verb == "*" || g.Group == "*" || strings.Contains(g.Resource, "*") {
			unused = append(unused, g)
		}
	}
	return missing, unused
}

// Difference returns the lines of a change from some grants to a set: "+ create secrets
// (handler password at x.go:3)" and "- delete pods".
func Difference(before []Grant, set Set, t Target) (lines []string) {
	missing, unused := Compare(set, before, t)
	for _, p := range missing {
		lines = append(lines, fmt.Sprintf("+ %s (%s)", p, p.NeededBy()))
	}
	for _, g := range unused {
		lines = append(lines, "- "+g.String())
	}
	return lines
}
