package process

import (
	"context"
	"errors"
	"slices"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/registry"
)

// delay is the time until something is due; unset if nothing is.
type delay = registry.Opt[time.Duration]

// change is what one pass over an object writes to it.
type change struct {
	parts     []execute.Part // what handlers asked for, with their results
	notes     patch.Patch    // records, the note and the base
	finalizer apply.Finalizer
	due       delay        // the time until handlers are due again
	from      *object.Body // the state that it was made for

	handling    *handling // nil if no handler could be called
	ran         bool      // some handlers were called
	acted       bool      // it does something, even if the object stays as it is
	interrupted bool      // the operator stopped before all handlers were called
	todo        bool      // the parts are stored in the note now, and sent later

	sent  bool // it was sent before, and failed
	apart bool // the parts are sent one by one, because together they were refused

	together map[string]any // what all parts together changed in the status
	accepted patch.Patch    // what those changed in the status that were not refused
	brief    bool           // the response to the last write does not matter

	// current returns the parts that are left after some were refused: a handler
	// has no result if one of its sub-handlers failed. May be nil.
	current func() []execute.Part
	// conclude decides again what is written about the handling, after the API
	// server refused some of the parts. May be nil.
	conclude func(context.Context) error
	// written is called when everything is written. May be nil.
	written func()
}

// asked is what is sent of the parts now.
func (c *change) asked() *patch.Patch {
	if c.todo {
		return &patch.Patch{}
	}
	return joint(c.parts)
}

// joint is one patch of all parts.
func joint(parts []execute.Part) *patch.Patch {
	if len(parts) == 1 {
		return &parts[0].Patch
	}
	all := &patch.Patch{}
	for i := range parts {
		all.Absorb(&parts[i].Patch)
	}
	return all
}

// passes is how many times an object goes from one state to the next before it
// lets what waits for its turn have it.
const passes = 20

// change goes from one state of the object to the next until there is nothing
// to do now. It returns the last state, and the time until there is again.
// What event handlers have asked for goes along with the first write.
func (k *Kind) change(ctx context.Context, m *Memory, state *object.Body, why Occasion, asked *[]execute.Part) (last *object.Body, due delay, err error) {
	last = state
	var spent cost
	defer func() { k.report(m, state, &spent) }()
	defer func() {
		if v := recover(); v != nil { // of filters, lifecycles, storages: users' code
			err = &panicError{v, execute.PanicStack()}
		}
	}()
	for range passes {
		m.at(last.ResourceVersion)
		m.unchecked = false
		if m.busy != nil {
			why.Wake = why.Wake.Join(m.busy.wake)
			m.busy.wake = nil
		}
		glanced := why.Event != nil && why.Event.unsettled && why.Event.Body == last
		if !glanced && len(*asked) == 0 && !m.pending() && k.settled(last) {
			k.sayUnchanged(ctx, m, last)
			m.settle(last)
			return last, delay{}, nil
		}
		if m.busy != nil {
			*asked = append(m.busy.asked, *asked...)
			m.busy.asked = nil
		}
		k.learn(m, last)
		c, err := k.handle(ctx, m, last, why, asked, &spent)
		if err != nil {
			m.work().wake = why.Wake
			return last, delay{}, err
		}
		before := last
		resent := c.sent
		c.brief = !resent && k.brief(c, before)
		c.sent = true
		last, err = k.write(ctx, m, before, c)
		if errors.Is(err, apply.ErrSuperseded) {
			k.supersede(m, last, c)
			continue
		}
		if err != nil {
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
		case c.due.Set && !apply.Kept(&c.notes, last), c.due.Set && c.due.Is == 0 && !progressed && !c.ran && !c.acted:
			// The records were not kept, or nothing was done though it is due:
			// going on at once would be doing it again and again.
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

// brief reports whether the response to the last write may be left out: nothing
// follows, and the stream will show the object. What handlers asked for must be
// checked, though.
func (k *Kind) brief(c *change, body *object.Body) bool {
	if c.due.Set || c.interrupted || body.Deleting || c.finalizer.Add || c.finalizer.Remove || !k.glances() || k.stopping() {
		return false
	}
	asked := joint(c.parts)
	main, status := asked.Split()
	notes, _ := c.notes.Split()
	return len(asked.Edits()) == 0 && len(main) == 0 && (len(status) == 0 || len(notes) > 0 && k.Resource.HasStatus())
}

// writeAsked writes what event handlers asked for, and nothing else.
func (k *Kind) writeAsked(ctx context.Context, m *Memory, body *object.Body, asked []execute.Part) {
	ctx, cancel := k.lasting(ctx)
	defer cancel()
	applier := apply.Applier{API: k.API, Resource: k.Resource, Log: k.Logger(body), Jitter: k.Config.Jitter}
	for _, part := range asked {
		after, err := k.apply(ctx, applier, body, &part.Patch, &patch.Patch{}, apply.Finalizer{})
		if err != nil && !errors.Is(err, apply.ErrGone) {
			applier.Log.Error("The change that an event handler asked for cannot be written, and is dropped.", "handler", part.Handler, "error", err)
			continue
		}
		body = after
	}
	k.wrote(m)
}

// handle decides what to do about the object, and does it. What could not be
// written last time comes first: handlers are not called again for it.
func (k *Kind) handle(ctx context.Context, m *Memory, body *object.Body, why Occasion, asked *[]execute.Part, spent *cost) (*change, error) {
	c := m.unsent(why.Event != nil)
	if c == nil && m.busy != nil && m.busy.unsaved != nil {
		c = m.busy.unsaved
		err := c.conclude(ctx)
		if err != nil && !body.Deleting {
			return nil, err
		}
		m.busy.unsaved = nil
		if err != nil { // the deletion does not wait for that: the outcomes stay in memory
			m.busy.refused, *asked, c = c.handling, append(c.parts, *asked...), nil
		}
	}
	if c != nil {
		c.parts = append(c.parts, *asked...)
		*asked = nil
		return c, nil
	}
	began := time.Now()
	s, err := k.look(ctx, m, body)
	if err != nil {
		return nil, err
	}
	defer func() { spent.add(s, time.Since(began)) }()
	s.wake, s.fresh, s.asked = why.Wake, why.Event != nil, *asked
	if c, err = s.decide(ctx, s.accompany(why.Event != nil)); err == nil || m.busy != nil && m.busy.unsaved != nil {
		*asked = nil // they are in the change
	}
	return c, err
}

// unsent is the change that could not be written last time; nil if there is none.
// If the API server refused the records in it, a new state of the object is handled
// instead, with these records in memory. So is an object that is being deleted, in
// any state: its deletion must not depend on being able to save.
func (m *Memory) unsent(news bool) *change {
	w := m.busy
	if w == nil || w.unsent == nil || w.refused != nil && (news || w.fresh || w.unsent.from.Deleting) {
		if w != nil {
			w.unsent, w.fresh = nil, false
		}
		return nil
	}
	return w.unsent
}

// write sends the change and notes its success.
func (k *Kind) write(ctx context.Context, m *Memory, body *object.Body, c *change) (*object.Body, error) {
	ctx, cancel := k.lasting(ctx)
	defer cancel()
	ctx = kube.WithPauses(ctx, k.aside)
	w := m.work()
	w.unsent = c
	if c.from == nil {
		c.from = body
	}
	applier := apply.Applier{
		API: k.API, Resource: k.Resource, Log: k.Logger(body), Brief: c.brief, Fresh: m.fresh(body, c), Bound: k.bound(ctx, m, c),
		Jitter: k.Config.Jitter,
	}
	k.sends(m)
	after, err := k.send(ctx, applier, body, c)
	k.wrote(m)
	k.sent(m, after, err)
	if after != body {
		m.daemons.Outdate()
	}
	if err == nil && c.finalizer.Add && !after.Deleting && !slices.Contains(after.Finalizers(), c.finalizer.Name) {
		err = errors.New("the cluster did not keep the finalizer: something removes it from what is written")
	}
	if after != body && (err == nil || !newer(m.version, after.ResourceVersion)) {
		m.version, m.responded = after.ResourceVersion, true // on errors, too: some of it may have been written
	}
	if err != nil {
		return after, err
	}
	if w.failures > 0 && k.Outages.Over(w.failure) {
		applier.Log.Info("Throttling is over. Switching back to normal operations.")
	}
	w.unsent, w.failures, w.failure, w.refused, w.fresh, w.until = nil, 0, nil, nil, false, time.Time{}
	m.wroteIn = k.pauses()
	if c.todo {
		w.todo = k.newTodo(c.parts, body)
	}
	if c.written != nil {
		c.written()
	}
	return after, nil
}

// fresh reports whether the body is the server's response to our own last write.
// Daemons write to the object as well, and handlers may have done so by themselves,
// also those whose changes were stored to be sent later.
func (m *Memory) fresh(body *object.Body, c *change) bool {
	return m.responded && m.daemons == nil && !c.acted && body.ResourceVersion == m.version && (c.handling == nil || !c.handling.wrote.Load())
}

// at notes the version that is being acted on.
func (m *Memory) at(version string) {
	if m.version != version {
		m.version, m.responded = version, false
	}
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
