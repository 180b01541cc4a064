package process

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/registry"
)

// delay is the time until something is due; unset if nothing is.
type delay = registry.Opt[time.Duration]

// Turn handles what is new about one object: an event of the stream, or, if it
// is nil, that the object's alarm has come or that somebody woke it. It returns
// whether the object is to be forgotten.
//
// The context is for handlers; what they have done is written even after it is
// cancelled.
func (k *Kind) Turn(ctx context.Context, m *Memory, event *Event, wake *Wake) (forget bool) {
	var asked patch.Patch
	if event != nil {
		k.guard(event.Body, func() { k.index(ctx, m, event) })
		k.guard(event.Body, func() { k.observe(ctx, m, event, &asked) })
		if event.Gone() {
			m.Forget(daemon.ErrDeleted)
			k.logger(event.Body).Debug("Deleted, really deleted, and we are notified.")
			return true
		}
	}
	if wake != nil {
		m.daemons.Hurry(wake.urgent)
	}
	body, news := m.newest(event)
	if !news && asked.Empty() && (k.Daemons == nil || event == nil || event.Body.ResourceVersion != m.version) {
		return false
	}
	if m.busy != nil && time.Now().Before(m.busy.until) {
		m.busy.body = body // after the pause
		m.daemons.See(body)
		return false
	}
	after, due, err := k.change(ctx, m, body, occasion{event: event != nil, news: news, wake: wake}, &asked)
	k.rest(m, after, due, err)
	return false
}

// guard keeps a panic of users' filters from ending the process. There is no
// second attempt: an event is told once.
func (k *Kind) guard(body *object.Body, fn func()) {
	defer func() {
		if v := recover(); v != nil {
			k.logger(body).Error(fmt.Sprintf("A filter has panicked: %v", v), "stack", string(debug.Stack()))
		}
	}()
	fn()
}

// rest notes when the object is to be looked at again.
func (k *Kind) rest(m *Memory, body *object.Body, due delay, err error) {
	switch {
	case errors.Is(err, apply.ErrGone):
		m.busy = nil // its deletion is about to be seen
	case err != nil:
		w := m.work()
		w.body = body
		pause := k.pause(w.failures)
		w.failures, w.until = w.failures+1, time.Now().Add(pause)
		k.logger(body).Error(fmt.Sprintf("Throttling for %g seconds due to an unexpected error: %v", pause.Seconds(), err))
		k.Alarm(body.Key(), w.until)
	case due.Set:
		m.busy = &business{body: body}
		k.Alarm(body.Key(), time.Now().Add(due.Is))
	default:
		m.busy = nil
	}
}

// newest is the state of the object to act on, unless that was done already.
func (m *Memory) newest(event *Event) (body *object.Body, news bool) {
	switch {
	case event == nil && m.busy == nil:
		return nil, false // what the alarm was for is done
	case event == nil:
		return m.busy.body, true
	case event.Listed() || m.version == "":
		// A listing is always looked at: after a restore of the cluster from a
		// backup, versions start from lower numbers.
		return event.Body, true
	}
	return event.Body, newer(event.Body.ResourceVersion, m.version)
}

// newer compares versions of one object. Where they are not numbers, any other
// version is taken for newer.
func newer(a, b string) bool {
	x, okX := object.Identity{ResourceVersion: a}.Version()
	y, okY := object.Identity{ResourceVersion: b}.Version()
	if !okX || !okY {
		return a != b
	}
	return x > y
}

// occasion is why an object has its turn.
type occasion struct {
	event bool  // the stream has an event, maybe the echo of our own change
	news  bool  // the state is one that was not acted on yet
	wake  *Wake // who asked not to wait for what is delayed; nil for nobody
}

// change goes from one state of the object to the next until there is nothing
// to do now. It returns the last state, and the time until there is again.
// What event handlers have asked for goes along with the first write.
func (k *Kind) change(ctx context.Context, m *Memory, body *object.Body, why occasion, asked *patch.Patch) (last *object.Body, due delay, err error) {
	last = body
	defer func() {
		if v := recover(); v != nil { // of filters, lifecycles, storages: users' code, too
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	for {
		c := &change{}
		if why.news || k.Daemons != nil {
			m.version = last.ResourceVersion
			if c, err = k.handle(ctx, m, last, why); err != nil {
				return last, delay{}, err
			}
		}
		c.asked.Absorb(asked)
		*asked = patch.Patch{}
		before := last
		if last, err = k.write(ctx, m, before, c); err != nil {
			return last, delay{}, err
		}
		progressed := last.ResourceVersion != before.ResourceVersion
		if c.due.Set && !apply.Kept(&c.notes, last) {
			// Nothing of what was done is remembered: going on at once would be
			// doing it again and again.
			return last, registry.Some(max(c.due.Is, k.forgotten(m))), nil
		}
		switch {
		case !why.news && !progressed || c.interrupted || k.stopping():
			return last, c.due, nil
		case !progressed && (!c.due.Set || c.due.Is > 0):
			return last, c.due, nil
		}
		why = occasion{news: true}
	}
}

// forgotten is the pause before handlers are called again whose progress the
// cluster does not keep. It grows.
func (k *Kind) forgotten(m *Memory) time.Duration {
	m.undone = min(m.undone, 253) + 1
	return k.pause(int(m.undone) - 1)
}

// change is what is to be written after handlers have run.
type change struct {
	asked       patch.Patch // what handlers ask for, results included
	notes       patch.Patch // what is to be remembered
	finalizer   apply.Finalizer
	due         delay // the time until handlers are due again
	interrupted bool
	written     func() // to be called when it is; may be nil
}

// handle decides what to do about the object, and does it. What could not be
// written last time comes first: handlers are not called again for it.
func (k *Kind) handle(ctx context.Context, m *Memory, body *object.Body, why occasion) (*change, error) {
	if m.busy != nil && m.busy.unsent != nil {
		return m.busy.unsent, nil
	}
	s, err := k.look(ctx, m, body)
	if err != nil {
		return nil, err
	}
	s.wake = why.wake
	return s.decide(ctx, s.accompany(why.event))
}

// write sends the change and notes its success.
func (k *Kind) write(ctx context.Context, m *Memory, body *object.Body, c *change) (*object.Body, error) {
	ctx, cancel := k.lasting(ctx)
	defer cancel()
	m.work().unsent = c
	applier := apply.Applier{API: k.API, Resource: k.Resource, Log: k.logger(body)}
	after, err := applier.Apply(ctx, body, &c.asked, &c.notes, c.finalizer)
	if err != nil {
		return after, err
	}
	if m.busy.failures > 0 {
		applier.Log.Info("Throttling is over. Switching back to normal operations.")
	}
	m.busy.unsent, m.busy.failures = nil, 0
	if newer(after.ResourceVersion, m.version) {
		m.version = after.ResourceVersion
	}
	if c.written != nil {
		c.written()
	}
	return after, nil
}

// lasting is a context for writing what handlers have done: it outlives the
// handlers' own by the configured grace.
func (k *Kind) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(k.Config.WriteGrace, cancel) })
	return lasting, func() { stop(); cancel() }
}

func (k *Kind) stopping() bool {
	select {
	case <-k.Stopping:
		return true
	default:
		return false
	}
}

func (k *Kind) pause(failures int) time.Duration {
	delays := k.Config.ErrorDelays
	if len(delays) == 0 {
		return 0
	}
	return delays[min(failures, len(delays)-1)]
}
