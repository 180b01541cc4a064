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
	case other == nil || w.All && len(other.Owned) == 0 && !other.Listed:
		return w
	case other.All && len(w.Owned) == 0 && !w.Listed:
		return other
	}
	joined := w
	if other.Listed && !w.Listed {
		joined = &Wake{All: w.All, IDs: slices.Clone(w.IDs), Owned: slices.Clone(w.Owned), Listed: true}
	}
	for _, info := range other.Owned {
		if slices.ContainsFunc(joined.Owned, func(known kind.Info) bool { return known.GVR() == info.GVR() }) {
			continue
		}
		if joined == w { // w may be in use elsewhere
			joined = &Wake{All: w.All, IDs: slices.Clone(w.IDs), Owned: slices.Clone(w.Owned), Listed: w.Listed}
		}
		joined.Owned = append(joined.Owned, info)
	}
	if other.All && !joined.All {
		joined = &Wake{All: true, IDs: joined.IDs, Owned: joined.Owned, Listed: joined.Listed}
	}
	for _, id := range other.IDs {
		if slices.Contains(joined.IDs, id) {
			continue
		}
		if joined == w { // w may be in use elsewhere
			joined = &Wake{All: w.All, IDs: slices.Clone(w.IDs), Owned: slices.Clone(w.Owned), Listed: w.Listed}
		}
		joined.IDs = append(joined.IDs, id)
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
