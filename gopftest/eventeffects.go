package gopftest

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// DelayEvents delays each event until d after its change. The order is kept.
func DelayEvents(d time.Duration) Effect {
	return Effect{pass: func(ctx context.Context, st *stream, f *Fault, event frame, send func(frame) error) error {
		if !event.time.IsZero() && !f.wait(ctx, st.cluster, time.After(time.Until(event.time.Add(d)))) {
			return errStreamEnds
		}
		return send(event)
	}}
}

// DuplicateEvents sends each event twice.
func DuplicateEvents() Effect {
	return Effect{pass: func(_ context.Context, _ *stream, _ *Fault, event frame, send func(frame) error) error {
		if err := send(event); err != nil {
			return err
		}
		return send(event)
	}}
}

// ReplayEvents sends each event, and then the object's previous state again. A client
// can see this when it reconnects to an API server that lags behind.
func ReplayEvents() Effect {
	return Effect{pass: func(_ context.Context, _ *stream, _ *Fault, event frame, send func(frame) error) error {
		if err := send(event); err != nil || event.older == nil {
			return err
		}
		return send(frame{kind: watch.Modified, object: event.older, time: event.time})
	}}
}

// SkipEvents drops events. No real API server does so within one watch; use it to
// imitate changes that happen while the operator is not watching.
func SkipEvents() Effect {
	return Effect{pass: func(context.Context, *stream, *Fault, frame, func(frame) error) error { return nil }}
}

// GarbleEvents cuts the JSON of events in the middle. The watch stays open.
func GarbleEvents() Effect {
	return Effect{pass: func(_ context.Context, st *stream, _ *Fault, event frame, _ func(frame) error) error {
		line := event.line()
		return st.write(append(line[:len(line)/2:len(line)/2], '\n'))
	}}
}

// CutBeforeEvents breaks the connection instead of sending an event.
func CutBeforeEvents() Effect {
	return Effect{pass: func(context.Context, *stream, *Fault, frame, func(frame) error) error { return errCut }}
}

// CutInsideEvents breaks the connection in the middle of an event.
func CutInsideEvents() Effect {
	return Effect{pass: func(_ context.Context, st *stream, _ *Fault, event frame, _ func(frame) error) error {
		line := event.line()
		if err := st.write(line[:len(line)/2]); err != nil {
			return err
		}
		return errCut
	}}
}

// FreezeStreams withholds all events until the fault is stopped or expires, and then
// sends them. The connections stay open.
func FreezeStreams() Effect {
	return Effect{freeze: true, pass: func(ctx context.Context, st *stream, f *Fault, event frame, send func(frame) error) error {
		if !f.wait(ctx, st.cluster, f.end()) {
			return errStreamEnds
		}
		return send(event)
	}}
}

// deliver sends an event through all matching faults.
func (st *stream) deliver(ctx context.Context, event frame) error {
	switch event.kind {
	case watch.Added, watch.Modified, watch.Deleted:
		return pass(ctx, st, st.cluster.faults.onEvent(st.request), event)
	case watch.Bookmark:
		if f := st.cluster.faults.freezes(st.request); f != nil && !f.wait(ctx, st.cluster, f.end()) {
			return errStreamEnds
		}
	}
	return st.write(event.line())
}

func pass(ctx context.Context, st *stream, strikes []strike, event frame) error {
	if len(strikes) == 0 {
		return st.write(event.line())
	}
	return strikes[0].pass(ctx, st, strikes[0].fault, event, func(next frame) error { return pass(ctx, st, strikes[1:], next) })
}
