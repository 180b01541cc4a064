// Package observe finds out which resources and namespaces there are to be
// served, now and as they come and go.
package observe

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/kind"
)

// Plan is which resources are to be served, by which handlers.
type Plan struct {
	Kinds    map[schema.GroupVersionResource]Served
	Problems []string // what is declared and cannot be served, in words
	Notes    []string // what is served otherwise than it may look, in words

	// Conflict is why the operator must not run like this at all; nil if it may.
	Conflict error
}

// Served is one resource and its handlers in the order of declaration.
type Served struct {
	Info     kind.Info
	Handlers registry.Set
	Select   string // of labels: what the server is asked for; "" for everything
	Managed  bool   // objects are needed with their managedFields
}

// Match makes a plan from what handlers ask for and what the cluster has. It
// is pure. A handler that cannot be served does not affect the others, unless it
// contradicts them: see [Plan.Conflict].
func Match(handlers registry.Set, cluster []kind.Info) Plan {
	p := Plan{Kinds: map[schema.GroupVersionResource]Served{}}
	missing := map[string]string{} // what may be meant instead
	reviewed := map[schema.GroupVersionResource]bool{}
	for _, h := range handlers {
		found := h.Of.Select(cluster)
		switch {
		case len(found) == 0:
			missing[h.Of.String()] = meant(h.Of.String(), cluster)
			continue
		case h.Family == registry.Reviews:
			for _, info := range found {
				reviewed[info.GVR()] = true
			}
			continue // the cluster asks by itself: nothing is to be followed
		case len(found) > 1 && h.Of.Specific():
			p.problem("handler %q (%s): %q means several resources: %s; add a group or a version", h.ID, h.Where, h.Of, names(found))
			continue
		}
		for _, info := range found {
			p.add(h, info)
		}
	}
	p.Conflict = errors.Join(p.twoVersions(), p.selections())
	p.selectIndexed(reviewed)
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		p.problem("the cluster does not have the resource %q%s; its handlers will start working as soon as it does", name, missing[name])
	}
	return p
}

func (p *Plan) add(h *registry.Handler, info kind.Info) {
	verbs := []string{"list", "watch"}
	if h.Family == registry.Changes || h.Family == registry.Background {
		verbs = append(verbs, "patch") // the others only look
	}
	for _, verb := range verbs {
		if !info.Can(verb) && !(verb == "patch" && ending(info)) {
			if h.Of.Specific() {
				p.problem("handler %q (%s): the cluster cannot %s the resource %q", h.ID, h.Where, verb, info)
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

// shares reports whether the handler can be served beside those that are served for
// the resource already, and notes if one of them has its id. Handlers of changes and
// events with one id are alternatives: the first that matches is called. Daemons,
// timers and indices have state in memory under their ids, so the first stays alone.
func (p *Plan) shares(s Served, h *registry.Handler, info kind.Info) bool {
	for _, other := range s.Handlers {
		if other.ID != h.ID || !other.Overlaps(h) {
			continue
		}
		if h.Family != registry.Changes && h.Family != registry.Events {
			p.note("handler %q (%s) is not served for %q: the one at %s has the same id and is served", h.ID, h.Where, info, other.Where)
			return false
		}
		p.note("handler %q (%s) has the same id for %q as the one at %s: it is called for what only itself matches", h.ID, h.Where, info, other.Where)
		return true
	}
	return true
}

// ending reports whether the definition of a resource is being deleted. Discovery
// then has neither create nor update nor patch, but the server still takes patches:
// finalizers must be released, or the definition never goes.
func ending(i kind.Info) bool { return i.Can("delete") && !i.Can("create") && !i.Can("update") }

// twoVersions finds resources whose changes would be handled in two versions of
// the same kind: each would take what the other has stored for a change.
func (p *Plan) twoVersions() error {
	versions := map[schema.GroupResource]Served{}
	for _, gvr := range slices.SortedFunc(maps.Keys(p.Kinds), func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(), b.String())
	}) {
		s := p.Kinds[gvr]
		if len(s.Handlers.Of(registry.Changes)) == 0 {
			continue
		}
		if other, found := versions[gvr.GroupResource()]; found {
			return fmt.Errorf("changes of %s are handled in two versions, by %s and %s, which would take each other's notes for changes: use one version for both",
				gvr.GroupResource(), where(other), where(s))
		}
		versions[gvr.GroupResource()] = s
	}
	return nil
}

// selections makes the selection of each resource that of its handlers, which
// must be one. An object that leaves a selection looks as if it were deleted, so
// that handlers which count on seeing real deletions exclude any.
func (p *Plan) selections() error {
	for gvr, s := range p.Kinds {
		first := s.Handlers[0]
		s.Select = first.Select
		p.Kinds[gvr] = s
		for _, h := range s.Handlers {
			if err := errors.Join(first.CheckSameSelect(h), h.CheckSelect()); err != nil {
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
	h := s.Handlers.Of(registry.Changes)[0]
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
