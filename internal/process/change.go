package process

import (
	"context"
	"errors"
	"slices"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/panics"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/tracing"
)

// delay is the time until something is due. Unset means that nothing is.
type delay = handler.Opt[time.Duration]

// change has everything that one pass writes to an object.
type change struct {
	parts     []execute.Part // the patches that handlers requested, with their results
	stored    int            // the number of parts that were stored in the note; they come first
	notes     patch.Patch    // framework records: progress, handling note, base
	finalizer apply.Finalizer
	due       delay        // the time until handlers are due again
	from      *object.Body // the state that the change was computed from

	handling    *handling // nil means that no handler could be called
	ran         bool      // at least one handler was called
	acted       bool      // stored changes are sent: that is progress even if the object does not change
	interrupted bool      // the operator stopped before all handlers were called
	todo        bool      // this write stores the parts in the note; they are sent later

	sent  bool // an earlier attempt to send it failed
	apart bool // the parts are sent one by one, because the API server refused them together

	together map[string]any // the status fields that all parts change together
	accepted patch.Patch    // the status fields of the parts that were not refused
	brief    bool           // the response body of the last write may be skipped

	// current returns the parts that remain after some were refused: a handler has
	// no result if one of its sub-handlers failed. May be nil.
	current func() []execute.Part
	// conclude computes the records again after the API server refused some of the
	// parts. May be nil.
	conclude func(context.Context) error
	// written is called when everything is written. May be nil.
	written func()
}

// asked returns the patch to send now.
func (c *change) asked() *patch.Patch {
	if c.todo {
		return &patch.Patch{}
	}
	return joint(c.parts)
}

// addEvents adds the changes that event handlers requested. More events may arrive for as long as the
// change cannot be sent, so the changes of the same event handler become one.
func (c *change) addEvents(parts []execute.Part) {
	others := len(c.parts)
	for others > c.stored && c.parts[others-1].Refuse == nil {
		others--
	}
	events, _ := joinedByHandler(append(c.parts[others:], parts...))
	c.parts = append(c.parts[:others], events...)
}

// joint returns one patch with the changes of all parts.
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

// maxPasses limits the passes of one turn. After that, other objects get their turns.
const maxPasses = 20

// change handles the object until nothing is due now: it calls handlers, writes the
// changes that they requested, and continues with the state that the write returned. It
// returns the last state and the delay until something is due again. asked has the
// changes that event handlers requested. They are sent with the first write; *asked is
// nil afterwards.
func (p *Processor) change(ctx context.Context, m *Memory, state *object.Body, why Occasion, asked *[]execute.Part) (last *object.Body, due delay, err error) {
	last = state
	spent := cost{room: p.roomFor(ctx, state)}
	if spent.room != nil {
		defer spent.room.leave()
	}
	defer func() { p.report(m, state, &spent) }()
	defer func() {
		if v := recover(); v != nil { // filters, lifecycles and storages may be the user's code
			err = &panicError{v, panics.StackOf(v)}
		}
	}()
	for range maxPasses {
		if p.begin(ctx, m, last, &why, asked) {
			return last, delay{}, nil
		}
		c, err := p.prepare(ctx, m, last, why, asked, &spent)
		if err != nil {
			m.pend().wake = why.Wake
			return last, delay{}, err
		}
		before, resent := last, c.sent
		c.brief = !resent && p.brief(m, c, before)
		c.sent = true
		last, err = p.write(ctx, m, before, c)
		if errors.Is(err, apply.ErrSuperseded) {
			p.supersede(m, last, c)
			continue
		}
		if err != nil {
			m.pend().wake = why.Wake
			return last, delay{}, err
		}
		done := p.result(before, last, c, resent)
		switch next(done) {
		case thenAwaitEvent:
			m.unchecked = true
			return last, delay{}, nil
		case thenEnd:
			m.ended = true
			return last, delay{}, nil
		case thenBackOff:
			return last, handler.Some(max(c.due.Is, p.lostRecordsDelay(m))), nil
		case thenStop:
			m.unchecked = done.progressed // after a pause, this version must be handled although it is known
			return last, c.due, nil
		case thenWait:
			return last, c.due, nil
		case thenHandleOccasion: // the write was left from an earlier turn
		case thenHandleState:
			last.Measure()
			if grown(state, last) {
				return last, handler.Some(time.Duration(0)), nil
			}
			why = Occasion{}
		}
	}
	return last, handler.Some(time.Duration(0)), nil
}

// grown reports whether the object takes much more memory than at the start of the turn.
// Then another turn must handle it: turns start only if there is memory for them, and
// clients can enlarge many objects while slow handlers run. The operator's own base may
// double an object.
func grown(since, now *object.Body) bool { return now.Memory() > 3*since.Memory()+grownBy }

// grownBy is the growth of a small object, in decoded bytes, that ends its turn.
const grownBy = 256 << 10

// begin starts one pass over the object. It returns true if the bytes of the object
// show that nothing is due: then no pass is necessary.
func (p *Processor) begin(ctx context.Context, m *Memory, body *object.Body, why *Occasion, asked *[]execute.Part) (settled bool) {
	m.actOn(versionOf(body.ResourceVersion))
	m.unchecked = false
	if m.busy != nil {
		why.Wake = why.Wake.Join(m.busy.wake)
		m.busy.wake = nil
	}
	tested := why.Event != nil && why.Event.unsettled && why.Event.Body == body
	if !tested && len(*asked) == 0 && !m.unfinished() && p.settled(m, body) {
		p.logUnchanged(ctx, m, body)
		m.settle(body)
		return true
	}
	if m.busy != nil {
		*asked = append(m.busy.asked.take(), *asked...)
	}
	p.noteTraces(m, body)
	return false
}

// result collects the facts from which [next] decides how the turn continues.
func (p *Processor) result(before, after *object.Body, c *change, resent bool) result {
	r := result{
		stale: after.Stale(), resent: resent, stopping: p.stopping(),
		ended:      after.Deleting && len(after.Finalizers()) == 0,
		progressed: after.ResourceVersion != before.ResourceVersion,
		acted:      c.ran || c.acted, interrupted: c.interrupted, due: c.due,
	}
	r.forgotten = !r.stale && c.due.Set && !apply.Kept(&c.notes, after)
	return r
}

// brief reports whether the response body of this write may be skipped. It may if the
// write has only framework records and nothing is due: the watch event then confirms it.
// A change that a handler requested is verified in the response, unless the schema of the
// resource is known to keep it.
func (p *Processor) brief(m *Memory, c *change, body *object.Body) bool {
	if c.due.Set || c.interrupted || body.Deleting || c.finalizer.Add || c.finalizer.Remove || !p.hasBytesTest() || p.resumes(m) || p.stopping() {
		return false
	}
	asked := joint(c.parts)
	main, status := asked.Split()
	notes, remembered := c.notes.Split()
	if len(asked.Edits()) > 0 || len(main) > 0 {
		return false
	}
	if len(status) == 0 {
		return true
	}
	fields, isMap := status["status"].(map[string]any)
	inOneWrite := len(remembered) > 0 && isMap && p.Config.KeepsStatus != nil && p.Config.KeepsStatus(fields)
	return p.Resource.HasStatus() && (len(notes) > 0 || inOneWrite)
}

// writeAsked writes the changes that event handlers requested, and nothing else.
func (p *Processor) writeAsked(ctx context.Context, m *Memory, body *object.Body, asked []execute.Part) {
	ctx, cancel := p.lasting(ctx)
	defer cancel()
	applier := apply.Applier{API: p.API, Resource: p.Resource, Log: tracing.Log(ctx, p.Logger(body)), Jitter: p.Config.Jitter}
	for _, part := range asked {
		after, err := p.apply(ctx, applier, body, &part.Patch, &patch.Patch{}, apply.Finalizer{})
		if err != nil && !errors.Is(err, apply.ErrGone) {
			applier.Log.Error("Dropped the change of an event handler, because it could not be written.", "handler", part.Handler, "error", err)
			continue
		}
		body = after
	}
	p.wrote(m)
}

// prepare calls the handlers that are due and returns the change to write. A change
// that could not be written in an earlier turn comes first: its handlers have run and
// must not be called again for it.
func (p *Processor) prepare(ctx context.Context, m *Memory, body *object.Body, why Occasion, asked *[]execute.Part, spent *cost) (*change, error) {
	c := m.unsent(why.Event != nil)
	if c == nil && m.busy != nil && m.busy.unsaved != nil {
		c = m.busy.unsaved
		err := c.conclude(ctx)
		if err != nil && !body.Deleting {
			return nil, err
		}
		m.busy.unsaved = nil
		if err != nil { // a deletion does not wait for the storage: the outcomes stay in memory
			m.busy.refused, *asked, c = c.handling, append(c.parts, *asked...), nil
		}
	}
	if c != nil {
		c.addEvents(*asked)
		*asked = nil
		return c, nil
	}
	began := time.Now()
	s, err := p.view(ctx, m, body)
	if err != nil {
		return nil, err
	}
	defer func() { spent.add(s, time.Since(began)) }()
	s.wake, s.fresh, s.asked, s.room = why.Wake, why.Event != nil, *asked, spent.room
	if c, err = s.decide(ctx, s.updateDaemons(why.Event != nil)); err == nil || m.busy != nil && m.busy.unsaved != nil {
		*asked = nil // the change contains them
	}
	return c, err
}

// unsent returns the change that could not be written in an earlier turn. nil means
// none. If the API server refused its records, a new state of the object is handled
// instead, with these records in memory. The same holds for an object that is being
// deleted, in any state: its deletion must not depend on being able to save.
func (m *Memory) unsent(isEvent bool) *change {
	w := m.busy
	if w == nil || w.unsent == nil || w.refused != nil && (isEvent || w.fresh || w.unsent.from.Deleting) {
		if w != nil {
			w.unsent, w.fresh = nil, false
		}
		return nil
	}
	return w.unsent
}

// write sends the change and updates the memory of the object.
func (p *Processor) write(ctx context.Context, m *Memory, body *object.Body, c *change) (*object.Body, error) {
	ctx, cancel := p.lasting(ctx)
	defer cancel()
	ctx = kube.WithPauses(ctx, func(pause func()) { p.aside(body, pause) })
	w := m.pend()
	w.unsent = c
	if c.from == nil {
		c.from = body
	}
	applier := apply.Applier{
		API: p.API, Resource: p.Resource, Log: tracing.Log(ctx, p.Logger(body)), Brief: c.brief, Fresh: m.fresh(body, c), Bound: p.bound(ctx, m, c),
		Jitter: p.Config.Jitter, Conflicted: func(before, now *object.Body) { p.noteConflict(ctx, m, before, now) },
	}
	p.noteSending(m)
	after, err := p.send(ctx, applier, body, c)
	p.wrote(m)
	p.noteResponse(m, after, err)
	if after != body {
		m.daemons.Load().Outdate()
	}
	if err == nil && c.finalizer.Add && !after.Deleting && !slices.Contains(after.Finalizers(), c.finalizer.Name) {
		err = errors.New("the API server did not keep the finalizer: an admission webhook may remove it")
	}
	if after != body && (err == nil || !m.acted().newer(versionOf(after.ResourceVersion))) {
		m.setActed(versionOf(after.ResourceVersion))
		m.responded = true // even after an error, because a part may have been written
	}
	if err != nil {
		return after, err
	}
	if w.failures > 0 && p.Outages.Over(w.failure) {
		applier.Log.Info("Throttling is over. Switching back to normal operations.")
	}
	w.unsent, w.failures, w.failure, w.refused, w.fresh, w.until = nil, 0, nil, nil, false, time.Time{}
	m.wroteIn = p.pauses()
	if c.todo {
		w.todo = p.newTodo(c.parts, body)
	}
	if c.written != nil {
		c.written()
	}
	return after, nil
}

// fresh reports whether the body is the server's response to our own last write. It is
// not if a daemon or a handler may have written to the object itself since then.
func (m *Memory) fresh(body *object.Body, c *change) bool {
	return m.responded && m.daemons.Load() == nil && !c.acted && versionOf(body.ResourceVersion) == m.acted() && (c.handling == nil || !c.handling.wrote.Load())
}

// actOn notes the version that is being acted on.
func (m *Memory) actOn(v version) {
	if m.acted() != v {
		m.setActed(v)
		m.responded = false
	}
}

// lasting returns a context for recording outcomes. It outlives the handlers' context
// by [Config.WriteGrace].
func (p *Processor) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(p.Config.WriteGrace, cancel) })
	return lasting, func() { stop(); cancel() }
}

// stopping reports whether the operator is stopping or paused. No new work may start then.
func (p *Processor) stopping() bool {
	select {
	case <-p.Stopping:
		return true
	default:
		return p.Paused != nil && p.Paused()
	}
}
