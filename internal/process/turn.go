package process

import (
	"context"
	"fmt"
	"time"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/object"
)

// Occasion is why an object has its turn; it may have several at once.
type Occasion struct {
	Event *Event // what the stream says; nil for nothing
	Wake  *Wake  // who asked not to wait for what is delayed; nil for nobody
	Alarm bool   // the moment has come that the object waited for
	Hurry bool   // the cause of errors may be gone: their pause is over
}

// Turn handles what is new about one object. It returns whether the object is to
// be forgotten.
//
// The context is for handlers; what they have done is written even after it is
// cancelled.
func (p *Processor) Turn(ctx context.Context, m *Memory, why Occasion) (forget bool) {
	var asked []execute.Part
	if event := why.Event; event != nil {
		p.detectForeignWrite(ctx, m, event)
		defer m.note(event.Mark) // only now: the event is compared with what was known before it
		m.noteOrigin(event)
		if m.version == "" && event.Type == "ADDED" {
			m.wroteIn = p.pauses() // no other operator has had it in a pause
		}
		p.recovering(event.Body, func() { p.index(ctx, m, event) })
		p.observe(ctx, m, event, &asked)
		if event.Gone() {
			m.Forget(daemon.ErrDeleted)
			p.Logger(event.Body).Debug("Deleted, really deleted, and we are notified.")
			return true
		}
	}
	if m.ended = m.ended && !m.revived(why); m.ended {
		return false // what else the stream tells is from before its end
	}
	if why.Wake != nil {
		m.daemons.Hurry(why.Wake.urgent)
	}
	if p.onlyObserves() {
		return p.finishObserving(ctx, m, why, &asked)
	}
	if why.Hurry && m.busy != nil {
		m.busy.until = time.Time{}
	}
	state, news := m.newest(why)
	switch {
	case !news && !p.needsTurn(m, why, &asked):
	case !news && m.outdated(state):
		p.writeAsked(ctx, m, state, asked)
	case m.throttled() && (!news || why.Event == nil): // a new state ends the pause
		m.busy.asked = append(m.busy.asked, asked...)
		m.busy.wake = m.busy.wake.Join(why.Wake)
	default:
		if m.unfinished() && news && why.Event != nil { // daemons need not wait for the rest
			p.recovering(state, func() { p.updateDaemonsOnly(ctx, m, state) })
		}
		after, due, err := p.change(ctx, m, state, why, &asked)
		if err != nil {
			m.pend().asked = append(m.pend().asked, asked...)
		}
		p.schedule(m, after, due, err)
	}
	return false
}

// meet notes how the object came to those who act on it: before, it may have been
// indexed only.
func (m *Memory) noteOrigin(e *Event) { m.listed = m.listed || m.version == "" && e.Listed() }

// revived reports whether there is a reason to look at an object that exists no
// more: a list that began after its end has it, or its deletion should have been
// seen by now.
func (m *Memory) revived(why Occasion) bool {
	return why.Event != nil && m.precedes(why.Event) || why.Alarm && m.busy != nil && m.busy.unsent != nil
}

// onlyLooks tells that there are no handlers but those of events and indices.
func (p *Processor) onlyObserves() bool { return len(p.Handlers) == 0 && p.Daemons == nil }

// onlyLook ends the turn of an object that there are no handlers for but those
// of events and indices.
func (p *Processor) finishObserving(ctx context.Context, m *Memory, why Occasion, asked *[]execute.Part) (forget bool) {
	if why.Event != nil && len(*asked) > 0 {
		p.writeAsked(ctx, m, why.Event.Body, *asked)
	}
	return false
}

// worthALook tells whether there is something to do about a state that was
// acted on already: to write what event handlers asked for, or to look whether
// daemons still fit.
func (p *Processor) needsTurn(m *Memory, why Occasion, asked *[]execute.Part) bool {
	current := why.Event != nil && why.Event.Body.ResourceVersion == m.version
	return len(*asked) > 0 || current && p.Daemons != nil
}

// newest is the newest known state of the object, and whether it is one to act
// on: one that was not acted on yet, or that was acted on with something left for
// this moment.
func (m *Memory) newest(why Occasion) (state *object.Body, news bool) {
	due := m.busy != nil && m.busy.body != nil && (why.Alarm || why.Hurry || why.Wake != nil)
	switch event := why.Event; {
	case event == nil && !due:
		state = m.daemons.Body() // one that ran has ended; nil: what it was for is done
		return state, state != nil && why.Alarm
	case event == nil:
		return m.busy.body, true
	case m.isNew(event):
		return event.Body, true
	case m.rewound(event):
		// The restore removed what the operator had stored, and not another client.
		m.version, m.guarded, m.undone = "", false, 0
		m.daemons.Outdate()
		return event.Body, true
	case due:
		return m.busy.body, true
	case m.busy != nil && m.busy.body != nil:
		return m.busy.body, false
	default:
		return event.Body, false
	}
}

// seen is the version of the newest known state, whether it was acted on or waits
// for that.
func (m *Memory) seen() string {
	if m.busy != nil && m.busy.body != nil && newer(m.busy.body.ResourceVersion, m.version) {
		return m.busy.body.ResourceVersion
	}
	return m.version
}

func (m *Memory) throttled() bool { return m.busy != nil && time.Now().Before(m.busy.until) }

// guard keeps a panic of users' filters from ending the process. There is no
// second attempt: an event is told once.
func (p *Processor) recovering(body *object.Body, fn func()) {
	defer func() {
		if v := recover(); v != nil {
			p.Logger(body).Error(fmt.Sprintf("A filter has panicked: %v", v), "stack", string(execute.PanicStack()))
		}
	}()
	fn()
}
