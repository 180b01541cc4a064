package permissions

import (
	"fmt"
	"slices"
	"strings"
)

// Rule is one rule of a role: verbs for one resource, with comments.
type Rule struct {
	Group, Resource, Name string
	Verbs                 []string
	notes                 []note
}

// note is the need of one source for some verbs.
type note struct{ verbs, label, without string }

// Comments returns the sources of the rule. Sources that need the same verbs for the same
// reason are in one line.
func (r Rule) Comments() (lines []string) {
	var merged []note
	for _, n := range r.notes {
		at := slices.IndexFunc(merged, func(m note) bool { return m.verbs == n.verbs && m.without == n.without })
		if at < 0 {
			merged = append(merged, n)
		} else {
			merged[at].label += ", " + n.label
		}
	}
	for _, n := range merged {
		lines = append(lines, fmt.Sprintf("%s: %s; without: %s", n.verbs, n.label, n.without))
	}
	return lines
}

// Role is a role for the manifests.
type Role struct {
	Account   Account
	Name      string
	Namespace string // empty means a ClusterRole
	Rules     []Rule
}

// Roles groups the set into roles: one for the whole cluster, one in each served namespace
// and in that of the operator, and one for people. Roles without rules are left out. No rule
// has a wildcard.
func (all Set) Roles(t Target) (roles []Role) {
	role := func(account Account, namespace string) *Role {
		name := t.Name
		if account == Operating {
			name = t.OperateRole()
		}
		at := slices.IndexFunc(roles, func(r Role) bool { return r.Name == name && r.Namespace == namespace })
		if at < 0 {
			roles, at = append(roles, Role{Account: account, Name: name, Namespace: namespace}), len(roles)
		}
		return &roles[at]
	}
	for _, p := range all {
		for _, place := range t.places(p) {
			role(p.Account, place).add(p)
		}
	}
	return roles
}

// add adds a permission to the rule of its resource. A comment names each source once for
// the verbs that it needs.
func (r *Role) add(p Permission) {
	last := len(r.Rules) - 1
	if last < 0 || r.Rules[last].Group != p.Group || r.Rules[last].Resource != p.Resource || r.Rules[last].Name != p.Name {
		r.Rules, last = append(r.Rules, Rule{Group: p.Group, Resource: p.Resource, Name: p.Name}), last+1
	}
	rule := &r.Rules[last]
	if slices.Contains(rule.Verbs, p.Verb) {
		return
	}
	rule.Verbs = append(rule.Verbs, p.Verb)
	for _, s := range p.Sources {
		at := slices.IndexFunc(rule.notes, func(n note) bool { return n.label == s.label() && n.without == s.Without })
		if at < 0 {
			rule.notes = append(rule.notes, note{p.Verb, s.label(), s.Without})
		} else {
			rule.notes[at].verbs += ", " + p.Verb
		}
	}
}

// label names the source without its line, because lines change with every edit.
func (s Source) label() string {
	file, _, _ := strings.Cut(s.Where, ":")
	switch {
	case s.Handler != "":
		return "handler " + s.Handler
	case s.Where != "":
		return "gopf.May in " + file
	default:
		return "setting " + s.Setting
	}
}
