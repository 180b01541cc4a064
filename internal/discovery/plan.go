// Package discovery determines the resources and namespaces to serve, and tracks their
// changes.
package discovery

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
)

// Plan assigns handlers to the resources of the cluster.
type Plan struct {
	Kinds    map[schema.GroupVersionResource]Served
	Problems []string // declarations that cannot be served, as messages
	Notes    []string // declarations with a surprising effect, as messages

	// Conflict is the reason why the operator must not run. nil means that it may.
	Conflict error
}

// Served is one resource with its handlers in order of declaration.
type Served struct {
	Info     kind.Info
	Handlers handler.Set
	Select   string // label selector for the server; empty means everything
	HandOver bool   // objects that leave the selection keep their finalizers
	Managed  bool   // a handler needs managedFields
}

// Match returns the plan for the handlers and the resources of the cluster. It is pure.
// A handler that cannot be served does not affect the others, unless it contradicts
// them: see [Plan.Conflict].
func Match(handlers handler.Set, cluster []kind.Info) Plan {
	p := Plan{Kinds: map[schema.GroupVersionResource]Served{}}
	missing := map[string]string{} // missing resource to suggestion
	reviewed := map[schema.GroupVersionResource]bool{}
	for _, h := range handlers {
		found := h.Of.Select(cluster)
		switch {
		case len(found) == 0:
			missing[h.Of.String()] = meant(h.Of.String(), cluster)
			continue
		case h.Family == handler.Reviews:
			for _, info := range found {
				reviewed[info.GVR()] = true
			}
			continue // the API server calls the webhook; nothing is watched
		case len(found) > 1 && h.Of.Specific():
			p.problem("handler %q (%s): %q is ambiguous: %s; add a group or a version", h.ID, h.Where, h.Of, names(found))
			continue
		}
		for _, info := range found {
			p.add(h, info)
		}
	}
	p.Conflict = errors.Join(p.twoVersions(), p.selections())
	p.selectIndexed(reviewed)
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		p.problem("the cluster does not have the resource %q%s; its handlers start when it does", name, missing[name])
	}
	return p
}

func (p *Plan) add(h *handler.Handler, info kind.Info) {
	verbs := []string{"list", "watch"}
	if h.Family == handler.Changes || h.Family == handler.Background || h.Family == handler.Reconciles {
		verbs = append(verbs, "patch") // the others only read
	}
	for _, verb := range verbs {
		if !info.Can(verb) && !(verb == "patch" && ending(info)) {
			if h.Of.Specific() {
				p.problem("handler %q (%s): %s does not support the verb %s", h.ID, h.Where, info, verb)
			}
			return
		}
	}
	s := p.Kinds[info.GVR()]
	if !p.shares(s, h, info) {
		return
	}
	s.Info = info
	s.Handlers = append(s.Handlers, h)
	s.Managed = s.Managed || h.Managed
	p.Kinds[info.GVR()] = s
}

// shares reports whether the handler can be served together with the handlers that the
// resource already has. It adds a note if one of them has the same id. Handlers of
// changes and events with the same id are alternatives: the first that matches is
// called. Daemons, timers and indices keep state in memory by id, so only the first of
// them is served.
func (p *Plan) shares(s Served, h *handler.Handler, info kind.Info) bool {
	for _, other := range s.Handlers {
		if other.ID != h.ID || !other.Overlaps(h) {
			continue
		}
		if h.Family != handler.Changes && h.Family != handler.Events {
			p.note("handler %q (%s) is ignored for %q: the handler at %s has the same id", h.ID, h.Where, info, other.Where)
			return false
		}
		p.note("handler %q (%s) for %q has the same id as the handler at %s: it is called only for objects that the other does not match", h.ID, h.Where, info, other.Where)
		return true
	}
	return true
}

// ending reports whether the CRD of a resource is being deleted. Discovery then lists
// neither create nor update nor patch, but the server still accepts patches. Finalizers
// must be released, or the CRD is never deleted.
func ending(i kind.Info) bool { return i.Can("delete") && !i.Can("create") && !i.Can("update") }

// twoVersions returns an error if changes of a resource are handled in two versions.
// The records of the one would look like changes to the other.
func (p *Plan) twoVersions() error {
	versions := map[schema.GroupResource]Served{}
	for _, gvr := range slices.SortedFunc(maps.Keys(p.Kinds), func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(), b.String())
	}) {
		s := p.Kinds[gvr]
		if len(s.Handlers.Of(handler.Changes)) == 0 {
			continue
		}
		if other, found := versions[gvr.GroupResource()]; found {
			return fmt.Errorf("changes of %s are handled in two versions, by %s and %s, which would handle each other's records as changes: use one version for both",
				gvr.GroupResource(), where(other), where(s))
		}
		versions[gvr.GroupResource()] = s
	}
	return nil
}

// selections sets the label selector of each resource, which all its handlers must
// share.
func (p *Plan) selections() error {
	for gvr, s := range p.Kinds {
		first := s.Handlers[0]
		s.Select, s.HandOver = first.Select, first.HandOver
		p.Kinds[gvr] = s
		for _, h := range s.Handlers {
			if err := first.CheckSameSelect(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// selectIndexed has the API server select the objects of resources that only feed
// indices by their labels. An object that leaves such a selection looks deleted, and
// leaves the indices all the same. Resources with reviews are read as a whole: memos
// of their objects are shared with reviews.
func (p *Plan) selectIndexed(reviewed map[schema.GroupVersionResource]bool) {
	for gvr, s := range p.Kinds {
		if s.Select == "" && !reviewed[gvr] {
			s.Select = s.Handlers.Indexed()
			p.Kinds[gvr] = s
		}
	}
}

func where(s Served) string {
	h := s.Handlers.Of(handler.Changes)[0]
	return fmt.Sprintf("%q for %s (%s)", h.ID, s.Info.Version, h.Where)
}

func (p *Plan) problem(format string, args ...any) {
	p.Problems = append(p.Problems, fmt.Sprintf(format, args...))
}

func (p *Plan) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

func names(infos []kind.Info) string {
	texts := make([]string, len(infos))
	for i, info := range infos {
		texts[i] = info.String()
	}
	return strings.Join(texts, ", ")
}
