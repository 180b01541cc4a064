package process

import (
	"bytes"

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
	k.once.Do(func() { k.glancing = k.glance() })
	if k.glancing.glancer == nil || b.Deleting {
		return false
	}
	seen := k.glancing.glancer.Look(b.Raw())
	return seen.Settled && bytes.Contains(seen.Finalizers, k.glancing.finalizer) == k.glancing.guarded
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
	g.glancer = essence.NewGlancer(k.Config.Base, k.Config.Progress)
	g.finalizer = []byte(`"` + k.Config.Finalizer + `"`)
	return g
}

// Skim is for an object that a listing brings and of which nothing is known
// yet: if there is nothing to do about it, it returns what is to be remembered
// of it, and the object needs no turn.
func (k *Kind) Skim(e *Event) (m *Memory, ok bool) {
	if len(k.Watchers) > 0 || k.Indexers != nil || !e.Listed() || len(k.Handlers) == 0 || !k.settled(e.Body) {
		return nil, false
	}
	m = NewMemory(e)
	m.settle(e.Body)
	return m, true
}

// settle notes that a state needs nothing.
func (m *Memory) settle(b *object.Body) {
	m.version = b.ResourceVersion
	m.handled = m.handled || m.listed
}

// pending tells whether something is left from before that must be done
// whatever the object is like.
func (m *Memory) pending() bool {
	return m.busy != nil && (m.busy.unsent != nil || m.busy.unsaved != nil || m.busy.failures > 0 || !m.busy.asked.Empty())
}
