package permissions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/policy"
	"gopf.dev/gopf/internal/rbac"
	"gopf.dev/gopf/kind"
)

// Kind has the facts about a resource that its declaration does not contain.
type Kind struct {
	Namespaced bool
	Status     bool     // it has the status subresource
	Names      []string // other names than the plural: kind, singular and short names
}

// Kinds has known resources by "GROUP/PLURAL".
type Kinds map[string]Kind

// of returns the facts about a resource. Types of Kubernetes and Go types are known
// without a definition. All others count as namespaced and with a status.
func (k Kinds) of(d *describe.Operator, r describe.Resource) Kind {
	if known, ok := k[r.Group+"/"+r.Plural]; ok {
		return known
	}
	if known, ok := builtIn(r.Group, r.Plural); ok {
		return known
	}
	for _, t := range d.Types {
		if t.Resource.Group == r.Group && t.Resource.Plural == r.Plural {
			return Kind{Namespaced: true, Status: t.Status}
		}
	}
	return Kind{Namespaced: true, Status: true}
}

// Derive returns the permissions that the operator needs. Each problem is a declaration
// that does not name its resource: no permission can be derived from it. It is pure.
func Derive(d *describe.Operator, known Kinds) (all Set, problems []string) {
	v := derivation{d: d, known: known, where: map[string]string{}}
	for i, h := range d.Handlers {
		if v.where[h.ID] == "" || h.Family != describe.Event {
			v.where[h.ID] = h.Where
		}
		if _, isActivity := activities[h.Family]; !isActivity && !v.resolve(&d.Handlers[i].Resource) {
			v.problem(h.Where, "handler "+h.ID, h.Resource)
		}
	}
	uses := v.uses()
	s := d.Settings
	framework := rbac.Framework{Definitions: !s.ScanningDisabled, Namespaces: !fixed(d.Scope) && !s.ScanningDisabled, Posting: s.Posting}
	if len(d.Scope.Namespaces) > 0 && slices.ContainsFunc(uses, func(u rbac.Use) bool { return !u.Info.Namespaced }) {
		framework.PostingIn = own
	}
	v.needs(rbac.Needs(uses, framework))
	v.children()
	v.election()
	if !s.Standalone {
		v.needs([]rbac.Need{rbac.Peering(kind.Info{Group: "kopf.dev", Version: "v1", Plural: peerings(d.Scope), Namespaced: len(d.Scope.Namespaces) > 0})})
	}
	v.webhooks()
	v.endpoints()
	v.declared()
	v.operating()
	return v.all.reduced(len(d.Scope.Namespaces) == 0), v.problems
}

var activities = map[string]bool{describe.Startup: true, describe.Cleanup: true, describe.Login: true, describe.Probe: true}

// own stands for the namespace of the operator.
const own = "."

func peerings(s describe.Scope) string {
	if len(s.Namespaces) > 0 {
		return "kopfpeerings"
	}
	return "clusterkopfpeerings"
}

// fixed reports whether the whole cluster is served, or all served namespaces are given by
// plain names. Then the operator does not watch the existing namespaces.
func fixed(s describe.Scope) bool {
	return !slices.ContainsFunc(s.Namespaces, func(n string) bool { return strings.ContainsAny(n, "*?![],") })
}

type derivation struct {
	d        *describe.Operator
	known    Kinds
	where    map[string]string // of handlers
	all      Set
	problems []string
}

// resolve completes the name of a resource, which may be any name in its definition. It
// reports whether the resource is known.
func (v *derivation) resolve(r *describe.Resource) bool {
	if r.Plural != "" {
		for known, facts := range v.known {
			if group, plural, _ := strings.Cut(known, "/"); group == r.Group && slices.Contains(facts.Names, r.Plural) {
				r.Plural = plural
			}
		}
		return true
	}
	group, plural, ok := coreName(r.Text)
	for known, facts := range v.known {
		if !strings.HasSuffix(known, "/"+r.Text) && !slices.Contains(facts.Names, r.Text) {
			continue
		}
		if ok {
			return false // several resources have this name
		}
		group, plural, _ = strings.Cut(known, "/")
		ok = true
	}
	if ok {
		r.Group, r.Plural = group, plural
	}
	return ok
}

func (v *derivation) problem(where, what string, r describe.Resource) {
	text := fmt.Sprintf("%s: %s does not name one resource: %q; use GROUP/VERSION/PLURAL, or grant its permissions in another role", where, what, r.Text)
	if !slices.Contains(v.problems, text) {
		v.problems = append(v.problems, text)
	}
}

// uses returns how handlers use the served resources.
func (v *derivation) uses() (all []rbac.Use) {
	for _, h := range v.d.Handlers {
		if activities[h.Family] || h.Resource.Plural == "" || h.Family == describe.Validate || h.Family == describe.Mutate {
			continue
		}
		at := slices.IndexFunc(all, func(u rbac.Use) bool { return u.Info.Group == h.Resource.Group && u.Info.Plural == h.Resource.Plural })
		if at < 0 {
			all, at = append(all, rbac.Use{Info: v.info(h.Resource)}), len(all)
		}
		switch h.Family {
		case describe.Event, describe.Index:
			all[at].Look = append(all[at].Look, h.ID)
		default:
			all[at].Write = append(all[at].Write, h.ID)
		}
	}
	return all
}

func (v *derivation) info(r describe.Resource) kind.Info {
	facts := v.known.of(v.d, r)
	info := kind.Info{Group: r.Group, Version: r.Version, Plural: r.Plural, Namespaced: facts.Namespaced, Verbs: []string{"get"}}
	if facts.Status {
		info.Subresources = []string{"status"}
	}
	return info
}

// needs adds permissions of package rbac, which the running operator checks as well.
func (v *derivation) needs(needs []rbac.Need) {
	for _, n := range needs {
		for _, by := range n.By {
			v.add(n, v.source(n, by))
		}
	}
}

func (v *derivation) add(n rbac.Need, s Source) {
	place, in := Served, ""
	switch {
	case n.In == own:
		place = Own
	case n.In != "":
		place, in = Own, n.In
	case !n.Info.Namespaced:
		place = Cluster
	}
	for _, verb := range n.Verbs {
		one := s
		one.Failures = s.Failures || onlyFailures(n, verb)
		v.all.add(Permission{
			Place: place, In: in, Verb: verb, Group: n.Info.Group, Name: n.Name,
			Resource: strings.TrimSuffix(n.Info.Plural+"/"+n.Subresource, "/"), Sources: []Source{one},
		})
	}
}

// source returns the origin of a need: a handler, or the setting that turns it on.
func (v *derivation) source(n rbac.Need, by string) Source {
	setting := map[string]string{
		"customresourcedefinitions": "Scanning.Disabled",
		"namespaces":                "Scanning.Disabled",
		"events":                    "Posting.Enabled",
		"leases":                    "Election.Enabled",
		"clusterkopfpeerings":       "Peering.Standalone",
		"kopfpeerings":              "Peering.Standalone",
	}[n.Info.Plural]
	if where := v.where[by]; where != "" && by != "the framework" && by != "peering" && by != "the lease" {
		return Source{Handler: by, Where: where, Without: n.Without}
	}
	return Source{Setting: setting, Without: n.Without}
}

// onlyFailures reports whether only responses to failures, large objects, or fallbacks for
// older API servers use the verb.
func onlyFailures(n rbac.Need, verb string) bool {
	switch n.Without {
	case "objects wait if they are large, or if the response to a write is lost":
		return true
	case "the operator never becomes the leader":
		return verb == "list" || verb == "watch" // standby replicas wait for the release
	}
	if n.Without == "the children of this kind are not maintained" && verb == "get" {
		return true // conflicts are resolved by a read
	}
	// A watch delivers the list as well, except on older API servers.
	return verb == "list" && slices.Contains(n.Verbs, "watch")
}

// election adds the permissions for the Lease.
func (v *derivation) election() {
	if s := v.d.Settings; s.Election {
		v.needs(rbac.Lease(cmp.Or(s.ElectionIn, own), s.ElectionName))
	}
}

// endpoints adds the permissions to review requests to protected endpoints.
func (v *derivation) endpoints() {
	for _, e := range []struct {
		setting string
		secure  bool
	}{{"Metrics.Secure", v.d.Settings.SecureMetrics}, {"Insight.Secure", v.d.Settings.SecureInsight}} {
		if !e.secure {
			continue
		}
		for _, n := range rbac.EndpointReviews() {
			v.add(n, Source{Setting: e.setting, Without: n.Without})
		}
	}
}

// children adds the permissions for the children of reconcile handlers, and for the other
// objects that they watch.
func (v *derivation) children() {
	for _, h := range v.d.Handlers {
		for i, o := range h.Owns {
			if !v.resolve(&h.Owns[i].Resource) {
				v.problem(h.Where, "gopf.Owns of handler "+h.ID, o.Resource)
				continue
			}
			n := rbac.Children(v.info(h.Owns[i].Resource), h.ID)
			v.add(n, Source{Handler: h.ID, Where: h.Where, Without: n.Without})
		}
		for _, r := range h.Watches {
			if !v.resolve(&r) {
				v.problem(h.Where, "gopf.Watches of handler "+h.ID, r)
				continue
			}
			n := rbac.Watched(v.info(r), h.ID)
			v.add(n, Source{Handler: h.ID, Where: h.Where, Without: n.Without})
		}
	}
}

// webhooks adds the permissions for the webhook configurations, and for the certificate.
func (v *derivation) webhooks() {
	s := v.d.Settings
	var reviews handler.Set
	for _, h := range v.d.Handlers {
		if h.Family == describe.Validate || h.Family == describe.Mutate {
			reviews = append(reviews, &handler.Handler{ID: h.ID, Family: handler.Reviews, Admission: &handler.Admission{Mutating: h.Family == describe.Mutate}})
		}
	}
	if len(reviews) == 0 {
		return
	}
	v.needs(admission.Needs(reviews, s.Managed, func(bool) bool { return false }))
	for _, mutating := range []bool{false, true} {
		if s.Managed != "" && !slices.ContainsFunc(reviews, func(h *handler.Handler) bool { return h.Admission.Mutating == mutating }) {
			v.leftovers(mutating)
		}
	}
	if s.WebhookSecret == "" {
		return
	}
	secrets := kind.Info{Version: "v1", Plural: "secrets", Namespaced: true}
	certificate := Source{Setting: "Admission.Server", Without: "the webhook server has no certificate"}
	v.add(rbac.Need{Info: secrets, Name: s.WebhookSecret, Verbs: []string{"get", "patch"}, In: own}, certificate)
}

// leftovers adds the permissions to remove the webhooks of an earlier version of the
// operator, which had handlers of this family.
func (v *derivation) leftovers(mutating bool) {
	info := kind.Info{Group: "admissionregistration.k8s.io", Version: "v1", Plural: "validatingwebhookconfigurations"}
	if mutating {
		info.Plural = "mutatingwebhookconfigurations"
	}
	s := Source{Setting: "Admission.Managed", Without: "webhooks of an earlier version of the operator stay, and reject requests"}
	v.add(rbac.Need{Info: info, Name: v.d.Settings.Managed, Verbs: []string{"get"}}, s)
	s.Failures = true
	v.add(rbac.Need{Info: info, Name: v.d.Settings.Managed, Verbs: []string{"patch"}}, s)
}

// declared adds the declared uses of the API.
func (v *derivation) declared() {
	for _, u := range v.d.Uses {
		r := u.Resource
		if !v.resolve(&r) {
			v.problem(u.Where, "gopf.May", r)
			continue
		}
		v.add(rbac.Need{Info: v.info(r), Subresource: u.Subresource, Verbs: u.Verbs}, Source{Where: u.Where, Without: "handlers that send these requests fail"})
	}
}

// operating adds the permission of people to change the state of the operator, for the
// resources whose objects have it.
func (v *derivation) operating() {
	if len(v.d.State.Prefixes) == 0 {
		return
	}
	for _, r := range Stateful(v.d) {
		v.all.add(Permission{Account: Operating, Place: Cluster, Verb: policy.Verb, Group: r.Group, Resource: r.Plural, Sources: []Source{{
			Setting: "Persistence", Without: "no user can repair the state of the operator on these objects",
		}}})
	}
}

// Stateful returns the resources whose objects have state of the operator.
func Stateful(d *describe.Operator) (all []policy.Resource) {
	for _, h := range d.Handlers {
		r := policy.Resource{Group: h.Resource.Group, Plural: h.Resource.Plural}
		switch h.Family {
		case describe.Change, describe.Reconcile, describe.Timer, describe.Daemon:
			if r.Plural != "" && !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	return all
}
