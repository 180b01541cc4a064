package daemon

import (
	"container/list"
	"context"
	"log/slog"
	"slices"
	"time"
)

// Task is one daemon or timer of one object. While it waits, it consists only of this
// struct and an entry of the clock. Its fields are guarded by the mutex of its object.
type Task struct {
	object *Object
	spec   *Spec

	timing
	failing time.Duration // from the start of the first failed attempt in a row to the start of the last call

	retries int32 // failed attempts in a row
	unfit   bool  // the object could not be decoded in the last attempt
	moving  bool  // being called or written for; counted by the set
	ended   bool  // removed from the object's tasks
	paused  bool  // stopped by a pause of the object

	misfit *misfit // nil means that the last call could decode the object
	unsent *unsent // the result that could not be written yet
	run    *run    // its goroutine; nil means that there is none
	stop   *stop   // nil until the task is stopping

	place *list.Element // in the line of its namespace; nil means that it does not wait there; guarded by the lines
}

// misfit is the last logged error of an object that could not be decoded, with the state
// of the object.
type misfit struct {
	digest string // of its fields besides metadata and status
	text   string // of the error
}

// unsent is a result that could not be written, with the time of the next retry.
type unsent struct {
	result   *result
	failures int
	until    time.Time
}

// run is a goroutine that works for a task.
type run struct {
	cancel   context.CancelCauseFunc
	stopping chan struct{}
	log      *slog.Logger // nil until the call starts
}

// Ring is called by the clock when the task is due.
func (t *Task) Ring() {
	var then actions
	t.object.mu.Lock()
	t.proceed(time.Now(), &then)
	t.object.mu.Unlock()
	then.do()
}

// proceed does everything that is due now, and sets the clock to the next due time.
func (t *Task) proceed(now time.Time, then *actions) {
	if t.ended {
		return
	}
	next, set := time.Time{}, false
	if t.stop != nil {
		next, set = t.advance(now, then)
		if t.stop.abandoned && t.run == nil {
			t.end(then)
			return
		}
	}
	if at, ok := t.due(now); ok && t.run == nil {
		if !at.After(now) {
			t.beginOrWait(then)
		} else if !set || at.Before(next) {
			next, set = at, true
		}
	}
	if clock := t.object.set.Clock; set {
		clock.Set(t, next)
	} else {
		clock.Cancel(t)
	}
}

// due returns when the task needs a goroutine, if it has none.
func (t *Task) due(now time.Time) (at time.Time, ok bool) {
	switch {
	case t.unsent != nil:
		return t.unsent.until, true
	case t.stop != nil:
		return time.Time{}, false
	}
	return t.spec.next(t.timing, t.object.touched, now)
}

// begin starts the goroutine, which calls leave at its end.
func (t *Task) begin(leave func()) {
	if !t.moving {
		t.moving = true
		t.object.set.moves()
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &run{cancel: cancel, stopping: make(chan struct{})}
	if t.stop != nil { // only to write an unsent result
		close(r.stopping)
	}
	t.run = r
	go func() {
		defer leave()
		t.work(r, func() *result { return t.call(ctx, r) })
	}()
}

// work makes calls as long as they are due, and writes their results.
func (t *Task) work(r *run, call func() *result) {
	if t.spec.Timer { // a daemon waits for long, and would keep the larger stack
		growStack(0)
	}
	for {
		p := t.pending()
		if p == nil {
			p = call()
		}
		if again := t.settle(p, t.send(p), r); !again {
			return
		}
	}
}

// growStack makes the runtime give a new goroutine a stack of 8 KiB while there is almost nothing to copy.
// Without it the runtime doubles the first 2 KiB twice, deep in the call: that is a third of the time of a short call.
// The index keeps the compiler from removing the frame.
//
//go:noinline
func growStack(index uint8) byte {
	var frame [5 << 10]byte
	return frame[index]
}

// pending returns the result that could not be written yet, or nil.
func (t *Task) pending() *result {
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	if t.unsent == nil {
		return nil
	}
	return t.unsent.result
}

// settle decides what follows a call and its write. It reports whether the goroutine
// must continue because the next call is due at once.
func (t *Task) settle(p *result, err error, r *run) (again bool) {
	var then actions
	t.object.mu.Lock()
	now := time.Now()
	if p != nil { // otherwise, the task was stopped before the call
		t.from = now
	}
	t.keep(p, err, now, &then)
	switch {
	case t.unsent == nil && (t.stop != nil || t.spec.over(t.timing)), t.stop != nil && t.stop.abandoned:
		t.end(&then)
	case t.unsent == nil && t.isDue(now) && (t.object.set.Admit == nil || !t.spec.Timer):
		again = true // a timer goes through its line again, because timers of other resources may wait
	default:
		t.run = nil
		if t.stop == nil {
			t.rest()
		}
		t.proceed(now, &then)
	}
	t.object.mu.Unlock()
	if !again {
		r.cancel(nil)
	}
	then.do()
	return again
}

func (t *Task) isDue(now time.Time) bool {
	at, ok := t.due(now)
	return ok && !at.After(now)
}

// keep remembers a result that could not be written.
func (t *Task) keep(p *result, err error, now time.Time, then *actions) {
	if err == nil {
		t.unsent = nil
		return
	}
	if t.unsent == nil {
		p.fresh = false // it may be outdated when it is sent
		t.unsent = &unsent{result: p}
	}
	pause := t.object.set.pause(t.unsent.failures)
	t.unsent.failures++
	t.unsent.until = now.Add(pause)
	at, attrs := (*slog.Logger).Debug, []any{"pause", pause, "error", err}
	if log, omitted := t.object.set.Outages.Failed(err); log {
		at = (*slog.Logger).Error
		if omitted > 0 {
			attrs = append(attrs, "omitted", omitted)
		}
	}
	t.say(then, at, "The handler's changes could not be written; retrying.", attrs...)
}

// end removes the task from its object. If it was not asked to stop, it is over for
// this process. The schedule of a paused timer is kept.
func (t *Task) end(then *actions) {
	o, s, name := t.object, t.object.set, t.spec.name()
	t.ended = true
	// A caller may be iterating over the old slice.
	o.tasks = slices.DeleteFunc(slices.Clone(o.tasks), func(other *Task) bool { return other == t })
	s.lines.remove(t)
	if len(o.tasks) == 0 {
		s.unregister(o)
	}
	s.Clock.Cancel(t)
	switch {
	case t.stop == nil:
		o.former = append(o.former, former{spec: t.spec})
	case t.paused && t.spec.Timer && !t.spec.over(t.timing) && !o.gone:
		// A client can start and end pauses at any rate, and calls must not follow it.
		o.former = append(o.former, former{t.spec, t})
	}
	switch {
	case t.spec.Timer:
	case t.stop == nil:
		t.say(then, (*slog.Logger).Debug, name+" has exited on its own and will not be retried or restarted.")
	default:
		t.say(then, (*slog.Logger).Debug, name+" has exited on request and will not be retried or restarted.")
	}
	if t.run == nil {
		t.rest()
		return // it was waiting, and the caller knows that it ended
	}
	if t.stop != nil && t.stop.quiet() {
		t.say(then, (*slog.Logger).Debug, name+" has exited gracefully.")
	}
	t.run = nil
	then.add(func() {
		o.mu.Lock()
		t.rest()
		o.mu.Unlock()
		o.wake()
	})
}

// rest records that the task is no longer being called or written for, or that it is
// abandoned.
func (t *Task) rest() {
	if t.moving {
		t.moving = false
		t.object.set.rests()
	}
}

// say logs a line about the task, after the lock is released.
func (t *Task) say(then *actions, at func(*slog.Logger, string, ...any), text string, attrs ...any) {
	o, body := t.object, t.object.body
	var log *slog.Logger
	if t.run != nil {
		log = t.run.log
	}
	then.add(func() {
		if log == nil {
			log = o.again(body.Body()).Log
		}
		at(log, text, append([]any{"handler", t.spec.ID}, attrs...)...)
	})
}
