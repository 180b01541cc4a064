package process

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/registry"
)

// delay is the time until something is due; unset if nothing is.
type delay = registry.Opt[time.Duration]

// change is what is to be written after handlers have run.
type change struct {
	asked       patch.Patch // what handlers ask for, results included
	notes       patch.Patch // what is to be remembered
	finalizer   apply.Finalizer
	due         delay // the time until handlers are due again
	ran         bool  // some handlers were called
	sent        bool  // it was tried to be written
	interrupted bool
	brief       bool   // nothing follows: the answer to the last write does not matter
	written     func() // to be called when it is; may be nil
}

// change goes from one state of the object to the next until there is nothing
// to do now. It returns the last state, and the time until there is again.
// What event handlers have asked for goes along with the first write.
func (k *Kind) change(ctx context.Context, m *Memory, state *object.Body, why Occasion, asked *patch.Patch) (last *object.Body, due delay, err error) {
	last = state
	defer func() {
		if v := recover(); v != nil { // of filters, lifecycles, storages, edits: users' code, too
			err = &panicError{v, debug.Stack()}
		}
	}()
	for range passes {
		m.version, m.unchecked = last.ResourceVersion, false
		if m.busy != nil {
			why.Wake = why.Wake.Join(m.busy.wake)
			m.busy.wake = nil
		}
		glanced := why.Event != nil && why.Event.unsettled && why.Event.Body == last
		if !glanced && asked.Empty() && !m.pending() && k.settled(last) {
			k.sayUnchanged(ctx, m, last)
			m.settle(last)
			return last, delay{}, nil
		}
		c, err := k.handle(ctx, m, last, why)
		if err != nil {
			m.work().wake = why.Wake
			return last, delay{}, err
		}
		if m.busy != nil {
			c.asked.Absorb(&m.busy.asked)
			m.busy.asked = patch.Patch{}
		}
		c.asked.Absorb(asked)
		*asked = patch.Patch{}
		before := last
		resent := c.sent
		c.brief = !resent && k.brief(c, before)
		c.sent = true
		if last, err = k.write(ctx, m, before, c); err != nil {
			m.work().wake = why.Wake
			return last, delay{}, err
		}
		if last.Stale() {
			m.unchecked = true // the stream will show what it is like
			return last, delay{}, nil
		}
		if last.Deleting && len(last.Finalizers()) == 0 {
			m.ended = true // that was the last finalizer; there is no new version of it
			return last, delay{}, nil
		}
		if resent && !k.stopping() {
			continue // that was from last time: now to what this one is about
		}
		progressed := last.ResourceVersion != before.ResourceVersion
		switch {
		case c.due.Set && !apply.Kept(&c.notes, last), c.due.Set && c.due.Is == 0 && !progressed && !c.ran:
			// Nothing of what was done is remembered, or nothing is done though it
			// is due: going on at once would be doing it again and again.
			return last, registry.Some(max(c.due.Is, k.forgotten(m))), nil
		case c.interrupted || k.stopping():
			m.unchecked = progressed // after a pause, it is to be looked at although it is known
			return last, c.due, nil
		case !progressed && (!c.due.Set || c.due.Is > 0):
			return last, c.due, nil
		}
		why = Occasion{}
	}
	return last, registry.Some(time.Duration(0)), nil
}

// brief tells whether the object need not be known after the change is written:
// when the stream brings it, a glance will do. What handlers asked for is to be
// checked, though.
func (k *Kind) brief(c *change, body *object.Body) bool {
	main, status := c.asked.Split()
	notes, _ := c.notes.Split()
	if len(main) > 0 || len(status) > 0 && (len(notes) == 0 || !k.Resource.HasStatus()) {
		return false
	}
	return k.glances() && !c.due.Set && !c.interrupted && !body.Deleting && !c.finalizer.Add && !c.finalizer.Remove && !k.stopping()
}

// passes is how many times an object goes from one state to the next before it
// lets what waits for its turn have it.
const passes = 20

// writeAsked writes what event handlers asked for, and nothing else.
func (k *Kind) writeAsked(ctx context.Context, m *Memory, body *object.Body, asked *patch.Patch) {
	ctx, cancel := k.lasting(ctx)
	defer cancel()
	applier := apply.Applier{API: k.API, Resource: k.Resource, Log: k.Logger(body)}
	_, err := applier.Apply(ctx, body, asked, &patch.Patch{}, apply.Finalizer{})
	if err != nil && !errors.Is(err, apply.ErrGone) {
		applier.Log.Error("What event handlers asked for cannot be written; there is no second attempt.", "error", err)
	}
	k.wrote(m)
}

// panicError is a panic of users' code outside of their handlers.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// handle decides what to do about the object, and does it. What could not be
// written last time comes first: handlers are not called again for it.
func (k *Kind) handle(ctx context.Context, m *Memory, body *object.Body, why Occasion) (*change, error) {
	if c := k.unsent(m, body, why.Event != nil); c != nil {
		return c, nil
	}
	if m.busy != nil && m.busy.unsaved != nil {
		c, err := m.busy.unsaved(ctx)
		if err == nil {
			m.busy.unsaved = nil
		}
		return c, err
	}
	s, err := k.look(ctx, m, body)
	if err != nil {
		return nil, err
	}
	s.wake, s.fresh = why.Wake, why.Event != nil
	return s.decide(ctx, s.accompany(why.Event != nil))
}

// unsent is what could not be written last time; nil if there is nothing. When
// the cluster will not take it, it is tried until the object changes: then it
// must not stand in the way of what is new. What handlers asked for is dropped
// first, and what is remembered of them if that does not help either.
func (k *Kind) unsent(m *Memory, body *object.Body, news bool) *change {
	if m.busy == nil || m.busy.unsent == nil {
		return nil
	}
	w := m.busy
	if !w.refused || !w.fresh && !news {
		return w.unsent
	}
	w.fresh = false
	log := k.Logger(body)
	if !w.unsent.asked.Empty() {
		log.Error("What handlers asked for cannot be written, and is dropped because the object has changed.")
		w.unsent.asked = patch.Patch{}
		return w.unsent
	}
	log.Error("What became of handlers cannot be written, and is dropped because the object has changed: some may be called again.")
	w.unsent, w.refused = nil, false
	return nil
}

// write sends the change and notes its success.
func (k *Kind) write(ctx context.Context, m *Memory, body *object.Body, c *change) (*object.Body, error) {
	ctx, cancel := k.lasting(ctx)
	defer cancel()
	ctx = kube.WithPauses(ctx, k.aside)
	w := m.work()
	w.unsent = c
	applier := apply.Applier{API: k.API, Resource: k.Resource, Log: k.Logger(body), Brief: c.brief}
	after, err := applier.Apply(ctx, body, &c.asked, &c.notes, c.finalizer)
	k.wrote(m)
	if err == nil && c.finalizer.Add && !after.Deleting && !slices.Contains(after.Finalizers(), c.finalizer.Name) {
		err = errors.New("the cluster did not keep the finalizer: something removes it from what is written")
	}
	if err == nil || newer(after.ResourceVersion, m.version) {
		m.version = after.ResourceVersion // on errors, too: a part of it may have been written
	}
	if err != nil {
		return after, err
	}
	if w.failures > 0 {
		applier.Log.Info("Throttling is over. Switching back to normal operations.")
	}
	w.unsent, w.failures, w.refused, w.fresh = nil, 0, false, false
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

// stopping tells that no new work is to be begun, at least for now.
func (k *Kind) stopping() bool {
	select {
	case <-k.Stopping:
		return true
	default:
		return k.Paused != nil && k.Paused()
	}
}
