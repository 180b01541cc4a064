package process

import (
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
)

// course is the decision about an object in one pass, before its handlers are called. The
// engine acts on it, and [Processor.Outlook] reports it.
type course int

const (
	thenHandle  course = iota // handle the cause
	thenSkip                  // no handler matches the object
	thenGuard                 // add the finalizer; it must precede all side effects
	thenUnguard               // remove the finalizer, because no handler requires it
)

// course decides whether the object is handled, or only its finalizer is changed.
func (v *view) course(interested, mustBlock bool) course {
	switch {
	case mustBlock && !v.blocked && !v.body.Deleting:
		return thenGuard
	case !mustBlock && v.blocked:
		return thenUnguard
	case !interested:
		return thenSkip
	}
	return thenHandle
}

// handedOver reports whether another operator owns the object.
func (v *view) handedOver() bool { return v.HandedOver != nil && v.HandedOver(v.body) }

// dealing is the decision about a cause whose records are loaded.
type dealing int

const (
	thenRun      dealing = iota // call the handlers that are due
	thenCatchUp                 // the same, for an update: some handlers have not seen the present state
	thenTakeBack                // end the handling of a change that was reverted
	thenHideBase                // replace plain values of a Secret in the base
	thenDropNote                // remove the note of a handling that another operator has finished
	thenNothing                 // the essence is unchanged
)

// dealing decides about an object whose essence is unchanged. All other causes run
// handlers.
func (h *handling) dealing() dealing {
	if h.cause.Reason != cause.Noop && h.cause.Reason != cause.Resume {
		return thenRun
	}
	switch {
	case h.behind(): // checked first, because the update of these handlers may be in progress
		return thenCatchUp
	case len(h.state.Recorded(cause.Update)) > 0:
		return thenTakeBack
	case h.plain && h.cause.Reason == cause.Noop:
		return thenHideBase
	case h.stale(), h.note.Followed():
		return thenDropNote
	case h.cause.Reason == cause.Noop:
		return thenNothing
	}
	return thenRun
}

// choose selects the handlers that take part in the handling, and restores the delays of
// earlier turns.
func (h *handling) choose(now time.Time) (selected handler.Set, ids []string) {
	selected = h.selected()
	ids = make([]string, len(selected))
	for i, handler := range selected {
		ids[i] = handler.ID
	}
	h.state.Select(ids, h.reason, now)
	if w := h.memory.busy; w != nil {
		h.state.Remember(w.delays)
		if !h.fresh {
			h.state.PostponeAll(w.postponed)
		}
	}
	return selected, ids
}
