package process

import (
	"context"
	"fmt"
	"time"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/panics"
)

// Occasion is the reason for a turn. Several may apply at once.
type Occasion struct {
	Event *Event // the event from the stream; nil means none
	Wake  *Wake  // a request to call delayed handlers now; nil means none
	Alarm bool   // the alarm of the object fired
	Hurry bool   // the cause of errors may be gone: their backoff ends now
}

// Turn handles one object until nothing is due now. It reports whether the object
// is gone and its memory must be dropped.
//
// The context is passed to handlers. Their outcomes are written even after it is
// canceled, within [Config.WriteGrace].
func (p *Processor) Turn(ctx context.Context, m *Memory, why Occasion) (forget bool) {
	if begin := p.Config.Begin; begin != nil {
		var end func()
		ctx, end = begin(ctx, p.Resource, m, why)
		defer end()
	}
	if p.Trail != nil {
		defer func(start time.Time) { p.Trail.Turned(m.UID(), why.String(), start) }(time.Now())
	}
	var asked []execute.Part
	var last *object.Body // the newest state after the change handlers; nil means that they had no turn
	if event := why.Event; event != nil {
		p.detectForeignWrite(ctx, m, event)
		defer m.note(event.Mark) // deferred, because the turn compares the event with earlier marks
		m.noteOrigin(event)
		if m.acted() == (version{}) && event.Type == kube.Added {
			m.wroteIn = p.pauses() // a new object cannot have been handled by another operator in a pause
		}
		p.recovering(event.Body, func() { p.index(ctx, m, event) })
		p.observe(ctx, m, event, &asked)
		if event.Gone() {
			m.Forget(daemon.ErrDeleted)
			p.Unpause(m)
			p.Logger(event.Body).Debug("Deleted, really deleted, and we are notified.")
			return true
		}
	}
	if m.ended = m.ended && !m.revived(why); m.ended {
		return false // the event is from before the end of the object
	}
	if why.Wake != nil {
		m.daemons.Load().Hurry(why.Wake.urgent)
	}
	if p.onlyObserves() {
		return p.finishObserving(ctx, m, why, &asked)
	}
	if why.Hurry && m.busy != nil {
		m.busy.until = time.Time{}
	}
	state, actionable := m.newest(why)
	switch {
	case !actionable && !p.needsTurn(m, why, &asked):
	case !actionable && m.outdated(state):
		p.writeAsked(ctx, m, state, asked)
	case m.throttled() && (!actionable || why.Event == nil): // a new state ends the backoff
		p.postpone(state, m.busy, asked)
		m.busy.wake = m.busy.wake.Join(why.Wake)
	default:
		if m.unfinished() && actionable && why.Event != nil { // daemons do not wait for unfinished writes
			p.recovering(state, func() { p.updateDaemonsOnly(ctx, m, state) })
		}
		m.noteDeletion(state)
		after, due, err := p.change(ctx, m, state, why, &asked)
		last = after
		if err != nil {
			p.postpone(after, m.pend(), asked)
		}
		p.schedule(ctx, m, after, due, err)
	}
	p.reconcile(ctx, m, last, why)
	m.dropLoaded()
	return false
}

// noteOrigin notes whether the first version that is acted on is a list item.
// Versions that were only indexed do not count.
func (m *Memory) noteOrigin(e *Event) { m.listed = m.listed || m.acted() == version{} && e.Listed() }

// initial reports whether the object is a list item that this process has not handled yet.
func (m *Memory) initial() bool { return m.listed && !m.handled }

// revived reports whether an object that seemed to be gone needs a turn: a list that
// began after its end contains it, or its deletion event should have arrived by now.
func (m *Memory) revived(why Occasion) bool {
	return why.Event != nil && m.precedes(why.Event) || why.Alarm && m.busy != nil && m.busy.failures > 0
}

// onlyObserves reports whether there are only event handlers and indexes.
func (p *Processor) onlyObserves() bool {
	return len(p.Handlers) == 0 && p.Daemons == nil && p.Reconcile == nil
}

// finishObserving ends the turn of an object for which there are only event handlers
// and indexes.
func (p *Processor) finishObserving(ctx context.Context, m *Memory, why Occasion, asked *[]execute.Part) (forget bool) {
	if why.Event != nil && len(*asked) > 0 {
		p.writeAsked(ctx, m, why.Event.Body, *asked)
	}
	return false
}

// needsTurn reports whether a state that was acted on before needs work: event
// handlers requested changes, or daemons may start or stop.
func (p *Processor) needsTurn(m *Memory, why Occasion, asked *[]execute.Part) bool {
	current := why.Event != nil && versionOf(why.Event.Body.ResourceVersion) == m.acted()
	return len(*asked) > 0 || current && p.Daemons != nil
}

// newest returns the newest known state of the object. The state is actionable if
// it was not acted on yet, or if something was left to do at this moment.
func (m *Memory) newest(why Occasion) (state *object.Body, actionable bool) {
	due := m.busy != nil && m.busy.body != nil && (why.Alarm || why.Hurry || why.Wake != nil)
	switch event := why.Event; {
	case event == nil && !due:
		state = m.daemons.Load().Body() // a daemon has ended; nil means that nothing waited for it
		return state, state != nil && why.Alarm
	case event == nil:
		return m.busy.body, true
	case m.isNew(event):
		return event.Body, true
	case m.rewound(event):
		// A restore of the cluster removed our state; no other client did.
		m.setActed(version{})
		m.facts.drop(guarded)
		m.undone = 0
		m.daemons.Load().Outdate()
		return event.Body, true
	case due:
		return m.busy.body, true
	case m.busy != nil && m.busy.body != nil:
		return m.busy.body, false
	default:
		return event.Body, false
	}
}

// seen returns the version of the newest known state, whether or not it was acted on.
func (m *Memory) seen() version {
	acted := m.acted()
	if m.busy != nil && m.busy.body != nil {
		if known := versionOf(m.busy.body.ResourceVersion); known.newer(acted) {
			return known
		}
	}
	return acted
}

// noteDeletion ends the backoff for errors from before the deletion of the object. Its
// deletion must not take long because of them.
func (m *Memory) noteDeletion(state *object.Body) {
	if m.busy != nil && m.busy.body != nil && state.Deleting && !m.busy.body.Deleting {
		m.busy.failures = 0
	}
}

// throttled reports whether the backoff after an error has not ended yet.
func (m *Memory) throttled() bool { return m.busy != nil && time.Now().Before(m.busy.until) }

// recovering keeps a panic in a user's filter from ending the process. The call is
// not repeated: an event is delivered once. Any client that changes objects can repeat
// the panic, and its log line is long, so the lines are limited.
func (p *Processor) recovering(body *object.Body, fn func()) {
	defer func() {
		if v := recover(); v != nil {
			ok, suppressed := p.limiter.Allow("filter")
			if !ok {
				return
			}
			var attrs []any
			if stack := panics.StackOf(v); stack != nil {
				attrs = append(attrs, "stack", string(stack))
			}
			if suppressed > 0 {
				attrs = append(attrs, "suppressed", suppressed)
			}
			p.Logger(body).Error(fmt.Sprintf("A filter panicked: %v", v), attrs...)
		}
	}()
	fn()
}
