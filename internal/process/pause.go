package process

import (
	"sync"
	"time"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/pause"
)

// Spaces has the pauses of namespaces. It is safe for concurrent use. A nil value has none.
type Spaces struct{ pauses sync.Map } // of *pause.Pause, by the names of namespaces

// Set sets the pause of a namespace; nil means none. It reports whether it is a change.
func (s *Spaces) Set(namespace string, now *pause.Pause) (changed bool) {
	if now == nil {
		_, changed = s.pauses.LoadAndDelete(namespace)
		return changed
	}
	in := *now
	in.Namespace = namespace
	before, known := s.pauses.Swap(namespace, &in)
	return !known || *before.(*pause.Pause) != in
}

// of returns the pause of a namespace that is in effect. nil means none.
func (s *Spaces) of(namespace string) *pause.Pause {
	if s == nil {
		return nil
	}
	found, ok := s.pauses.Load(namespace)
	if !ok || found.(*pause.Pause).Ended(time.Now()) {
		return nil
	}
	return found.(*pause.Pause)
}

// pauseOf returns the pause of an object, or of its namespace. nil means none. Deletions
// are never paused. Neither are objects that have left the selection: no event shows the end of
// their pause or their deletion, which would wait for the finalizer.
func (p *Processor) pauseOf(body *object.Body) *pause.Pause {
	if body.Deleting {
		return nil
	}
	found := pause.Of(body.Annotations(), p.prefixes(), time.Now())
	if found == nil {
		found = p.Spaces.of(body.Namespace)
	}
	if found != nil && p.hasLeft(body) {
		return nil
	}
	return found
}

// hasLeft reports whether the object has left the selection of the operator.
func (p *Processor) hasLeft(body *object.Body) bool { return p.Left != nil && p.Left(body) }

// notePause reports the begin and the end of a pause: one log line and one Kubernetes event
// each. An object that was paused before this process started gets no event. Clients can pause
// objects at any rate, so the lines are limited.
func (p *Processor) notePause(m *Memory, body *object.Body, found *pause.Pause) {
	switch {
	case found != nil && m.facts.first(isPaused):
		p.paused.Add(1)
		attrs := []any{"annotation", found.Key}
		if found.Namespace != "" {
			attrs = append(attrs, "namespace", found.Namespace)
		}
		if found.Reason != "" {
			attrs = append(attrs, "reason", loglimit.Cut(found.Reason))
		}
		if !found.Until.IsZero() {
			attrs = append(attrs, "until", found.Until)
		}
		write := p.Logger(body).Info
		if found.Problem != "" {
			write, attrs = p.Logger(body).Warn, append(attrs, "problem", found.Problem)
		}
		p.sayPause(write, "The object is paused: handlers are not called, except for events and the deletion.", attrs...)
		if !m.initial() {
			p.poster(body)("Normal", "Paused", "The object is paused by the annotation "+found.Where()+".")
		}
	case found == nil && p.Unpause(m) && !body.Deleting && !p.hasLeft(body):
		p.sayPause(p.Logger(body).Info, "The pause of the object has ended.")
		p.poster(body)("Normal", "Continued", "The pause of the object has ended.")
	}
}

// sayPause logs a line about a pause, unless there are too many.
func (p *Processor) sayPause(write func(string, ...any), text string, attrs ...any) {
	ok, suppressed := p.pauseLines.Allow()
	if !ok {
		return
	}
	if suppressed > 0 {
		attrs = append(attrs, "suppressed", suppressed)
	}
	write(text, attrs...)
}

// Unpause notes that the object is not paused, gone, or no longer served. It reports whether
// the object was paused. It is safe for concurrent use.
func (p *Processor) Unpause(m *Memory) bool {
	paused := m.facts.drop(isPaused)
	if paused {
		p.paused.Add(-1)
	}
	return paused
}

// keepPaused is the delay of the next look at an object in a paused namespace. The end of
// the pause starts a turn earlier. The state of the object is kept until then, because no
// event shows that a namespace is not paused.
const keepPaused = 24 * time.Hour

// untilContinued returns the time until the end of the pause. It is unset if only an event
// of the object can end it.
func (v *view) untilContinued() delay {
	switch {
	case !v.pause.Until.IsZero():
		return handler.Some(max(0, time.Until(v.pause.Until)))
	case v.pause.Namespace != "":
		return handler.Some(keepPaused)
	}
	return delay{}
}

// PausedObjects returns the number of objects that are paused.
func (p *Processor) PausedObjects() int { return int(p.paused.Load()) }

// Paused reports whether the object was found paused. It is safe for concurrent use.
func (m *Memory) Paused() bool { return m.facts.has(isPaused) }
