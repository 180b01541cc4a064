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
type bytesTest struct {
	settled   *essence.SettledTest // nil if they must be decoded
	finalizer []byte               // in quotes
	guarded   bool                 // settled objects have the finalizer
}

// settled tells, by its bytes alone, that there is nothing to do about an
// object: it is as it was handled last, nothing is being handled, and its
// finalizer is as it should be. If not, it has to be looked at.
func (p *Processor) settled(b *object.Body) bool {
	if !p.hasBytesTest() || b.Deleting || b.Stale() {
		return false
	}
	seen := p.bytesTest.settled.Run(b.Raw())
	return seen.Settled && bytes.Contains(seen.Finalizers, p.bytesTest.finalizer) == p.bytesTest.guarded
}

// glances tells whether objects can be looked at without being decoded.
func (p *Processor) hasBytesTest() bool {
	p.bytesTestOnce.Do(func() { p.bytesTest = p.newBytesTest() })
	return p.bytesTest.settled != nil
}

// glance is how objects of this kind can be looked at. Wherever anything but
// their essence counts, they are decoded.
func (p *Processor) newBytesTest() (g bytesTest) {
	if p.Daemons != nil || len(p.Fields) > 0 || p.secret() || p.Resource.Kind == "ReplicaSet" {
		return g
	}
	for _, h := range p.Handlers {
		filtered := h.Change != nil || len(h.When)+len(h.Criteria.Labels)+len(h.Criteria.Annotations)+len(h.Criteria.Fields) > 0
		if h.Reasons[cause.Resume] || h.Mandatory && filtered {
			return g
		}
		g.guarded = g.guarded || h.Mandatory
	}
	if g.settled = essence.NewSettledTest(p.Config.Base, p.Config.Progress); g.settled != nil {
		g.settled.TrustCopies = p.Config.TrustCopies
	}
	g.finalizer = []byte(`"` + p.Config.Finalizer + `"`)
	return g
}

// Skim is a turn for which nothing is decoded, written or called but to keep
// indices up to date. It returns false, with nothing done, if that is not enough.
func (p *Processor) TurnIfSettled(ctx context.Context, m *Memory, e *Event) bool {
	if len(p.Watchers) > 0 || p.Daemons != nil || len(p.Handlers) == 0 || m.busy != nil || m.ended || e.Gone() {
		return false
	}
	m.noteOrigin(e)
	switch {
	case m.isNew(e):
		if !p.settled(e.Body) {
			e.unsettled = true
			return false
		}
		p.detectForeignWrite(ctx, m, e)
		p.logUnchanged(ctx, m, e.Body)
		m.settle(e.Body)
	case m.rewound(e):
		return false
	default:
		p.detectForeignWrite(ctx, m, e)
	}
	p.recovering(e.Body, func() { p.index(ctx, m, e) })
	m.note(e.Mark)
	return true
}

// sayUnchanged tells those who want to know it all what a whole turn would have
// told.
func (p *Processor) logUnchanged(ctx context.Context, m *Memory, b *object.Body) {
	switch {
	case !p.Log.Enabled(ctx, slog.LevelDebug):
	case m.listed && !m.handled:
		p.Logger(b).Debug("Resuming is in progress:", "body", p.shown(b))
	default:
		p.Logger(b).Debug("Something has changed, but we are not interested (the essence is the same).")
	}
}

// settle notes that a state needs nothing.
func (m *Memory) settle(b *object.Body) {
	m.actOn(b.ResourceVersion)
	m.unchecked = false
	m.handled = m.handled || m.listed
	m.witness = nil
}

// pending tells whether something is left from before that must be done
// whatever the object is like.
func (m *Memory) unfinished() bool {
	return m.busy != nil && (m.busy.unsent != nil || m.busy.unsaved != nil || m.busy.failures > 0 || len(m.busy.asked) > 0 || m.busy.todo != nil)
}
