package process

import (
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/object"
)

// Trail receives the steps of objects, for their timelines. Its methods must be quick and
// safe for concurrent use.
type Trail interface {
	// Turned is called after each turn of the object with the uid.
	Turned(uid, why string, start time.Time)
	// Called is called after each call of a handler.
	Called(uid, id string, o execute.Outcome, took time.Duration)
	// Wrote is called after each write that was attempted. A nil error means that it
	// succeeded.
	Wrote(uid string, err error, start time.Time)
	// Posted is called for each Kubernetes event about the object.
	Posted(uid, reason, message string)
}

// observing returns the observer of the calls for an object. nil means that there is none.
func (p *Processor) observing(b *object.Body) execute.Observer {
	if p.Trail == nil {
		return p.Observe
	}
	uid := b.UID
	return func(id string, o execute.Outcome, took time.Duration) {
		if p.Observe != nil {
			p.Observe(id, o, took)
		}
		p.Trail.Called(uid, id, o, took)
	}
}

// String returns the reason of a turn for timelines.
func (o Occasion) String() string {
	switch {
	case o.Event != nil && o.Event.Listed():
		return "LISTED, version " + o.Event.Body.ResourceVersion
	case o.Event != nil:
		return string(o.Event.Type) + ", version " + o.Event.Body.ResourceVersion
	case o.Wake != nil:
		return "woken"
	case o.Hurry:
		return "the cause of an error may be gone"
	case o.Alarm:
		return "alarm"
	}
	return ""
}
