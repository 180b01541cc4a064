package process

import (
	"bytes"
	"context"
	"log/slog"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/object"
)

// bytesTest finds settled objects without decoding them.
type bytesTest struct {
	settled    *essence.SettledTest // nil means that objects must be decoded
	finalizers [][]byte             // the quoted name, and its former names
	guarded    bool                 // settled objects have one of the finalizers
	resumes    bool                 // there are resume handlers
}

// settled reports, from its bytes alone, that nothing is due on an object. False means
// unknown: decode the object.
func (p *Processor) settled(m *Memory, b *object.Body) bool {
	return !p.resumes(m) && p.unchanged(b)
}

// resumes reports whether resume handlers may be due on an object, although it is
// unchanged.
func (p *Processor) resumes(m *Memory) bool {
	return p.hasBytesTest() && p.bytesTest.resumes && m.initial()
}

// unchanged reports, from its bytes alone, that an object is unchanged since it was last
// handled, has no progress records, and has the finalizer if and only if it needs it.
// False means unknown: decode the object.
func (p *Processor) unchanged(b *object.Body) bool {
	if !p.hasBytesTest() || b.Deleting || b.Stale() {
		return false
	}
	seen := p.bytesTest.settled.Run(b.Raw())
	if !seen.Settled {
		return false
	}
	guarded := false
	for _, f := range p.bytesTest.finalizers {
		guarded = guarded || bytes.Contains(seen.Finalizers, f)
	}
	return guarded == p.bytesTest.guarded
}

// hasBytesTest reports whether objects of the resource can be tested without decoding.
func (p *Processor) hasBytesTest() bool {
	p.bytesTestOnce.Do(func() { p.bytesTest = p.newBytesTest() })
	return p.bytesTest.settled != nil
}

// newBytesTest returns the test for the resource. It is empty if more than the essence
// counts: daemons, or filters of mandatory handlers, for example.
func (p *Processor) newBytesTest() (g bytesTest) {
	if p.Daemons != nil || p.Reconcile != nil || len(p.Fields) > 0 || p.secret() || p.Resource.Kind == "ReplicaSet" {
		return g
	}
	for _, h := range p.Handlers {
		filtered := h.Change != nil || len(h.When)+len(h.Criteria.Labels)+len(h.Criteria.Annotations)+len(h.Criteria.Fields) > 0
		if h.Mandatory && filtered {
			return g
		}
		g.guarded, g.resumes = g.guarded || h.Mandatory, g.resumes || h.Reasons[cause.Resume]
	}
	if g.settled = essence.NewSettledTest(p.Config.Base, p.Config.Progress); g.settled != nil {
		g.settled.TrustCopies = p.Config.TrustCopies
	}
	for _, f := range p.finalizers() {
		g.finalizers = append(g.finalizers, []byte(`"`+f+`"`))
	}
	return g
}

// TurnIfSettled is a turn for objects on which nothing is due. It only updates the
// indexes: it decodes nothing, calls no handler and writes nothing. If the object may
// need more, it does nothing and returns false.
func (p *Processor) TurnIfSettled(ctx context.Context, m *Memory, e *Event) bool {
	if len(p.Watchers) > 0 || p.Daemons != nil || p.Reconcile != nil || len(p.Handlers) == 0 || m.busy != nil || m.ended || e.Gone() {
		return false
	}
	m.noteOrigin(e)
	switch {
	case m.isNew(e):
		if !p.settled(m, e.Body) {
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

// logUnchanged logs at DEBUG the line that a full turn would have logged.
func (p *Processor) logUnchanged(ctx context.Context, m *Memory, b *object.Body) {
	switch {
	case !p.Log.Enabled(ctx, slog.LevelDebug):
	case m.initial():
		p.Logger(b).Debug("Resuming is in progress:", "body", p.shown(b))
	default:
		p.Logger(b).Debug("Something has changed, but we are not interested (the essence is the same).")
	}
}

// settle notes that a state was found settled.
func (m *Memory) settle(b *object.Body) {
	m.actOn(versionOf(b.ResourceVersion))
	m.unchecked = false
	m.handled = m.handled || m.listed
	m.setWitness(nil)
}

// unfinished reports whether earlier turns left work that must be done in any state of
// the object.
func (m *Memory) unfinished() bool {
	return m.busy != nil && (m.busy.unsent != nil || m.busy.unsaved != nil || m.busy.failures > 0 || !m.busy.asked.empty() || m.busy.todo != nil)
}
