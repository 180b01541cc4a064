package deploy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/internal/permissions"
)

// Model has everything that the manifests are made of.
type Model struct {
	Options
	Operator    *describe.Operator
	Permissions permissions.Set
	Problems    []string         // declarations whose permissions cannot be derived
	CRDs        []map[string]any // decoded definitions; may be empty
	Target      permissions.Target

	flags []string
	known permissions.Kinds
}

// ScopeFlags returns the flags of the operator that must be known before it is described.
func (o Options) ScopeFlags() []string {
	if len(o.Namespaces) == 0 {
		return append([]string{"--all-namespaces"}, o.Args...)
	}
	var flags []string
	for _, n := range o.Namespaces {
		flags = append(flags, "--namespace="+n)
	}
	return append(flags, o.Args...)
}

// Ports in the container.
const (
	healthPort  = 8080
	metricsPort = 9090
	webhookPort = 9443
)

// NewModel completes the description with the flags of the Deployment, and derives the
// permissions. It changes d. crds become part of the manifests; known are definitions that
// are maintained elsewhere.
func NewModel(o Options, d *describe.Operator, crds []map[string]any, known ...map[string]any) *Model {
	m := &Model{Options: o, Operator: d, CRDs: crds, flags: []string{"--log-format=json"}}
	s := &d.Settings
	if s.Health == "" {
		s.Health = ":" + strconv.Itoa(healthPort)
		m.flags = append(m.flags, "--health="+s.Health)
	}
	if s.Metrics == "" {
		s.Metrics = ":" + strconv.Itoa(metricsPort)
		m.flags = append(m.flags, "--metrics="+s.Metrics)
	}
	if !s.Election && !given(o.Args, "--election") {
		s.Election = true
		m.flags = append(m.flags, "--election=lease")
	}
	if s.Election && s.ElectionName == "" {
		s.ElectionName = o.Name
		m.flags = append(m.flags, "--election-name="+o.Name)
	}
	if !s.Standalone && !s.PeeringMandatory && !given(o.Args, "--peering") && (s.Peering == "" || s.Peering == "default") {
		s.Standalone = true
		m.flags = append(m.flags, "--standalone")
	}
	m.Target = permissions.Target{Name: o.Name, Namespace: o.Namespace, Namespaces: plainNames(o.Namespaces)}
	m.known = kindsOf(slices.Concat(known, crds))
	m.Permissions, m.Problems = permissions.Derive(d, m.known)
	return m
}

// Undefined returns a note for each served custom resource that has no definition, because
// its handle has no Go type. Each resource is named once.
func (m *Model) Undefined() (notes []string) {
	for _, h := range m.Operator.Handlers {
		r := h.Resource
		if r.Plural == "" || permissions.BuiltIn(r.Group, r.Plural) {
			continue
		}
		if _, ok := m.known[r.Group+"/"+r.Plural]; ok || m.typed(r) {
			continue
		}
		note := fmt.Sprintf("%s has no definition, because its handle has no Go type; use gopf.For, or name the file with its definition in %s under definitions", r.Text, OptionsFile)
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}

// typed reports whether the resource has a Go type.
func (m *Model) typed(r describe.Resource) bool {
	return slices.ContainsFunc(m.Operator.Types, func(t describe.Type) bool {
		return t.Resource.Group == r.Group && t.Resource.Plural == r.Plural
	})
}

func given(args []string, flag string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return a == flag || strings.HasPrefix(a, flag+"=") })
}

// plainNames returns the namespaces if all are plain names. Otherwise the roles must be for
// the whole cluster.
func plainNames(all []string) []string {
	if slices.ContainsFunc(all, func(n string) bool { return strings.ContainsAny(n, "*?![],") }) {
		return nil
	}
	return all
}

// kindsOf returns the kinds of the definitions, with their scopes and subresources.
func kindsOf(crds []map[string]any) permissions.Kinds {
	all := permissions.Kinds{}
	for _, crd := range crds {
		spec, _ := crd["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		group, _ := spec["group"].(string)
		plural, _ := names["plural"].(string)
		kind := permissions.Kind{Namespaced: spec["scope"] != "Cluster"}
		short, _ := names["shortNames"].([]any)
		for _, name := range append([]any{names["kind"], names["singular"]}, short...) {
			if text, ok := name.(string); ok && text != plural {
				kind.Names = append(kind.Names, text)
			}
		}
		versions, _ := spec["versions"].([]any)
		for _, v := range versions {
			version, _ := v.(map[string]any)
			subresources, _ := version["subresources"].(map[string]any)
			_, has := subresources["status"]
			kind.Status = kind.Status || has
		}
		all[group+"/"+plural] = kind
	}
	return all
}

// port returns the port of a listen address.
func port(address string, otherwise int) int {
	_, text, _ := strings.Cut(address, ":")
	n, _ := strconv.Atoi(text[strings.LastIndex(text, ":")+1:])
	return cmp.Or(n, otherwise)
}

// reviews reports whether the operator has admission handlers of a family. An empty family
// means any.
func (m *Model) reviews(family string) bool {
	return slices.ContainsFunc(m.Operator.Handlers, func(h describe.Handler) bool {
		return (h.Family == describe.Validate || h.Family == describe.Mutate) && (family == "" || h.Family == family)
	})
}

// object is a decoded manifest.
type object = map[string]any

// list is a decoded JSON array.
type list = []any

func (m *Model) meta(name string) object {
	return object{"name": name, "namespace": m.Namespace, "labels": m.labels()}
}

func (m *Model) clusterMeta(name string) object { return object{"name": name, "labels": m.labels()} }

func (m *Model) labels() object {
	return object{"app.kubernetes.io/name": m.Name, "app.kubernetes.io/managed-by": "gopf"}
}

func (m *Model) selector() object { return object{"app.kubernetes.io/name": m.Name} }
