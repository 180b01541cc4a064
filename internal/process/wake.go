package process

import "slices"

// Wake is a request of somebody that delayed handlers be called now.
type Wake struct {
	All bool
	IDs []string // if not all: which ones, with their sub-handlers
}

// Join is both requests in one. Nil is none.
func (w *Wake) Join(other *Wake) *Wake {
	switch {
	case w == nil:
		return other
	case other == nil:
		return w
	}
	return &Wake{All: w.All || other.All, IDs: slices.Concat(w.IDs, other.IDs)}
}

// urgent tells whether a handler is among those to be called now.
func (w *Wake) urgent(id string) bool {
	if w == nil || w.All {
		return w != nil
	}
	return slices.ContainsFunc(w.IDs, func(known string) bool {
		return id == known || len(id) > len(known) && id[:len(known)+1] == known+"/"
	})
}
