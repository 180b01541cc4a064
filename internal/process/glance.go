package process

import (
	"bytes"
	"context"
	"log/slog"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/object"
)

// glancing is how objects are found to need nothing without being decoded.
type glancing struct {
	glancer   *essence.Glancer // nil if they must be decoded
	finalizer []byte           // in quotes
	guarded   bool             // settled objects have the finalizer
}

// settled tells, by its bytes alone, that there is nothing to do about an
// object: it is as it was handled last, nothing is being handled, and its
// finalizer is as it should be. If not, it has to be looked at.
func (k *Kind) settled(b *object.Body) bool {
	if !k.glances() || b.Deleting || b.Stale() {
		return false
	}
	seen := k.glancing.glancer.Look(b.Raw())
	return seen.Settled && bytes.Contains(seen.Finalizers, k.glancing.finalizer) == k.glancing.guarded
}

// glances tells whether objects can be looked at without being decoded.
func (k *Kind) glances() bool {
	k.once.Do(func() { k.glancing = k.glance() })
	return k.glancing.glancer != nil
}

// glance is how objects of this kind can be looked at. Wherever anything but
// their essence counts, they are decoded.
func (k *Kind) glance() (g glancing) {
	if k.Daemons != nil || len(k.Fields) > 0 || k.secret() || k.Resource.Kind == "ReplicaSet" {
		return g
	}
	for _, h := range k.Handlers {
		filtered := h.Change != nil || len(h.When)+len(h.Criteria.Labels)+len(h.Criteria.Annotations)+len(h.Criteria.Fields) > 0
		if h.Reasons[cause.Resume] || h.Mandatory && filtered {
			return g
		}
		g.guarded = g.guarded || h.Mandatory
	}
	if g.glancer = essence.NewGlancer(k.Config.Base, k.Config.Progress); g.glancer != nil {
		g.glancer.TrustCopies = k.Config.TrustCopies
	}
	g.finalizer = []byte(`"` + k.Config.Finalizer + `"`)
	return g
}

// Skim is a turn for which nothing is decoded, written or called but to keep
// indices up to date. It returns false, with nothing done, if that is not enough.
func (k *Kind) Skim(ctx context.Context, m *Memory, e *Event) bool {
	if len(k.Watchers) > 0 || k.Daemons != nil || len(k.Handlers) == 0 || m.busy != nil || m.ended || e.Gone() {
		return false
	}
	m.meet(e)
	switch {
	case m.isNews(e):
		if !k.settled(e.Body) {
			e.unsettled = true
			return false
		}
		k.compare(ctx, m, e)
		k.sayUnchanged(ctx, m, e.Body)
		m.settle(e.Body)
	case m.rewound(e):
		return false
	default:
		k.compare(ctx, m, e)
	}
	k.guard(e.Body, func() { k.index(ctx, m, e) })
	m.note(e.Mark)
	return true
}

// sayUnchanged tells those who want to know it all what a whole turn would have
// told.
func (k *Kind) sayUnchanged(ctx context.Context, m *Memory, b *object.Body) {
	switch {
	case !k.Log.Enabled(ctx, slog.LevelDebug):
	case m.listed && !m.handled:
		k.Logger(b).Debug("Resuming is in progress:", "body", k.shown(b))
	default:
		k.Logger(b).Debug("Something has changed, but we are not interested (the essence is the same).")
	}
}

// settle notes that a state needs nothing.
func (m *Memory) settle(b *object.Body) {
	m.at(b.ResourceVersion)
	m.unchecked = false
	m.handled = m.handled || m.listed
	m.witness = nil
}

// pending tells whether something is left from before that must be done
// whatever the object is like.
func (m *Memory) pending() bool {
	return m.busy != nil && (m.busy.unsent != nil || m.busy.unsaved != nil || m.busy.failures > 0 || len(m.busy.asked) > 0 || m.busy.todo != nil)
}
