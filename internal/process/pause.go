package process

import (
	"time"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/pause"
)

// pauseOf returns the pause of an object. nil means none. Deletions are never paused.
func (p *Processor) pauseOf(body *object.Body) *pause.Pause {
	if body.Deleting {
		return nil
	}
	return pause.Of(body.Annotations(), p.prefixes(), time.Now())
}

// notePause reports the begin and the end of a pause: one log line and one Kubernetes event
// each. An object that was paused before this process started gets no event.
func (v *view) notePause() {
	m := v.memory
	switch {
	case v.pause != nil && m.facts.first(isPaused):
		v.paused.Add(1)
		attrs := []any{"annotation", v.pause.Key}
		text := "The object is paused: handlers are not called, except for events and the deletion."
		if v.pause.Reason != "" {
			attrs = append(attrs, "reason", v.pause.Reason)
		}
		if !v.pause.Until.IsZero() {
			attrs = append(attrs, "until", v.pause.Until)
		}
		if v.pause.Problem != "" {
			v.log.Warn(text, append(attrs, "problem", v.pause.Problem)...)
		} else {
			v.log.Info(text, attrs...)
		}
		if !m.initial() {
			v.poster(v.body)("Normal", "Paused", "The object is paused by the annotation "+v.pause.Key+".")
		}
	case v.pause == nil && v.Unpause(m) && !v.body.Deleting:
		v.log.Info("The pause of the object has ended.")
		v.poster(v.body)("Normal", "Continued", "The pause of the object has ended.")
	}
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

// untilContinued returns the time until the end of the pause. It is unset if only another
// client can end it.
func (v *view) untilContinued() delay {
	if v.pause.Until.IsZero() {
		return delay{}
	}
	return handler.Some(max(0, time.Until(v.pause.Until)))
}

// PausedObjects returns the number of objects that are paused.
func (p *Processor) PausedObjects() int { return int(p.paused.Load()) }
