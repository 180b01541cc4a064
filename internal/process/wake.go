package process

import (
	"slices"
	"strings"

	"gopf.dev/gopf/kind"
)

// Wake is a request to call delayed handlers now. IDs has each id once, so joined
// requests are bounded by the number of declared handlers; see [Processor.Waking].
type Wake struct {
	All bool
	IDs []string // if not All: the handlers; each includes its sub-handlers
	// Owned has the kinds of children that have changed. Only the reconcile handlers that
	// own these kinds are called.
	Owned []kind.Info
	// Far is Owned for children in other namespaces than the object. Their owner may be
	// forged, so such calls are limited; see [reconciled.wakeFar].
	Far []kind.Info
	// Watched has the reconcile handlers that refer to an object that has changed.
	Watched []string
	// Listed means that the children of the object may be listed now: reconcile handlers
	// that waited for that, or that failed, are called.
	Listed bool
}

// Waking returns a request to call the delayed handlers with the ids, or all
// delayed handlers if there are no ids. The id of a sub-handler stands for the
// handler that declares it. A nil result means that no handler, daemon or timer of
// the resource has any of the ids.
func (p *Processor) Waking(ids []string) *Wake {
	if len(ids) == 0 {
		return &Wake{All: true}
	}
	w := &Wake{}
	note := func(declared string) {
		isMeant := func(id string) bool { return within(declared, id) || within(id, declared) }
		if slices.ContainsFunc(ids, isMeant) && !slices.Contains(w.IDs, declared) {
			w.IDs = append(w.IDs, declared)
		}
	}
	for _, h := range p.Handlers {
		note(h.ID)
	}
	if p.Reconcile != nil {
		for _, h := range p.Reconcile.Handlers {
			note(h.ID)
		}
	}
	if p.Daemons != nil {
		for _, spec := range p.Daemons.Specs {
			note(spec.ID)
		}
	}
	if len(w.IDs) == 0 {
		return nil
	}
	return w
}

// Join returns one request for both. nil means no request.
func (w *Wake) Join(other *Wake) *Wake {
	switch {
	case w == nil:
		return other
	case other == nil || w.covers(other):
		return w
	case other.All && other.covers(w):
		return other
	}
	// Both may be in use elsewhere, so the result is a new request.
	joined := &Wake{
		All: w.All || other.All, Listed: w.Listed || other.Listed,
		IDs: slices.Clone(w.IDs), Owned: joinKinds(w.Owned, other.Owned), Far: joinKinds(w.Far, other.Far), Watched: slices.Clone(w.Watched),
	}
	for _, id := range other.IDs {
		if !slices.Contains(joined.IDs, id) {
			joined.IDs = append(joined.IDs, id)
		}
	}
	for _, id := range other.Watched {
		if !slices.Contains(joined.Watched, id) {
			joined.Watched = append(joined.Watched, id)
		}
	}
	return joined
}

// covers reports whether w includes everything that other requests. w may be nil.
func (w *Wake) covers(other *Wake) bool {
	if w == nil || other.All && !w.All || other.Listed && !w.Listed {
		return false
	}
	missing := func(known []string) func(string) bool {
		return func(id string) bool { return !slices.Contains(known, id) }
	}
	return (w.All || !slices.ContainsFunc(other.IDs, missing(w.IDs))) &&
		!slices.ContainsFunc(other.Owned, func(info kind.Info) bool { return !hasKind(w.Owned, info) }) &&
		!slices.ContainsFunc(other.Far, func(info kind.Info) bool { return !hasKind(w.Far, info) }) &&
		!slices.ContainsFunc(other.Watched, missing(w.Watched))
}

func hasKind(known []kind.Info, info kind.Info) bool {
	return slices.ContainsFunc(known, func(k kind.Info) bool { return k.GVR() == info.GVR() })
}

// joinKinds returns the kinds of both lists, each once.
func joinKinds(a, b []kind.Info) []kind.Info {
	joined := slices.Clone(a)
	for _, info := range b {
		if !hasKind(joined, info) {
			joined = append(joined, info)
		}
	}
	return joined
}

// urgent reports whether the request includes a handler. w may be nil.
func (w *Wake) urgent(id string) bool {
	if w == nil || w.All {
		return w != nil
	}
	return slices.ContainsFunc(w.IDs, func(known string) bool { return within(id, known) })
}

// within reports whether id belongs to the handler or one of its sub-handlers.
func within(id, handler string) bool {
	rest, ok := strings.CutPrefix(id, handler)
	return ok && (rest == "" || rest[0] == '/')
}
