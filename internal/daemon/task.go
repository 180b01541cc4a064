package daemon

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// Task is one daemon or timer of one object. While it waits, it is no more than
// this and an entry of the clock. Its fields are guarded by its object.
type Task struct {
	object *Object
	spec   *Spec

	timing
	retries int       // attempts in a row that have failed so far
	since   time.Time // the start of the first of them

	unfit  bool // the object did not fit the handler's type at the last attempt
	moving bool // it is not just waiting; counted by the set
	ended  bool // it is not one of the object's tasks anymore

	unsent *unsent // what could not be written yet
	run    *run    // its goroutine; nil if there is none
	stop   *stop   // nil unless it was asked to stop
}

// unsent is what could not be written, and when to try again.
type unsent struct {
	result   *result
	failures int
	until    time.Time
}

// run is a goroutine at work for a task.
type run struct {
	cancel   context.CancelCauseFunc
	stopping chan struct{}
	log      *slog.Logger // nil until the call begins
}

// Ring is for the clock: the moment of the task has come.
func (t *Task) Ring() {
	var then deeds
	t.object.mu.Lock()
	t.proceed(time.Now(), &then)
	t.object.mu.Unlock()
	then.do()
}

// proceed does what is due now, and sets the clock to what is due next.
func (t *Task) proceed(now time.Time, then *deeds) {
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
			t.begin()
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

// due tells when a goroutine is needed, if none is there.
func (t *Task) due(now time.Time) (at time.Time, ok bool) {
	switch {
	case t.unsent != nil:
		return t.unsent.until, true
	case t.stop != nil:
		return time.Time{}, false
	}
	return t.spec.next(t.timing, t.object.touched, now)
}

// begin starts the goroutine.
func (t *Task) begin() {
	if !t.moving {
		t.moving = true
		t.object.set.moves()
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &run{cancel: cancel, stopping: make(chan struct{})}
	if t.stop != nil { // only to write what is unsent
		close(r.stopping)
	}
	t.run = r
	go t.work(r, func() *result { return t.call(ctx, r) })
}

// work makes calls for as long as they are due, and writes what they ask for.
func (t *Task) work(r *run, call func() *result) {
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

// pending is what could not be written yet; nil if nothing.
func (t *Task) pending() *result {
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	if t.unsent == nil {
		return nil
	}
	return t.unsent.result
}

// settle decides how to go on after a call and its write. The goroutine goes on
// only if there is something to do at once.
func (t *Task) settle(p *result, err error, r *run) (again bool) {
	var then deeds
	t.object.mu.Lock()
	now := time.Now()
	t.from = now
	t.keep(p, err, now, &then)
	switch {
	case t.unsent == nil && (t.stop != nil || t.spec.over(t.timing)), t.stop != nil && t.stop.abandoned:
		t.end(&then)
	case t.unsent == nil && t.isDue(now):
		again = true
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

// keep remembers what could not be written.
func (t *Task) keep(p *result, err error, now time.Time, then *deeds) {
	if err == nil {
		t.unsent = nil
		return
	}
	if t.unsent == nil {
		p.fresh = false // it may be old when it is sent
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
	t.say(then, at, "What the handler asked for could not be written. It will be sent again.", attrs...)
}

// end takes the task away. If nobody asked for that, it stays away.
func (t *Task) end(then *deeds) {
	o, s, name := t.object, t.object.set, t.spec.name()
	t.ended = true
	// Somebody may be walking the old slice.
	o.tasks = slices.DeleteFunc(slices.Clone(o.tasks), func(other *Task) bool { return other == t })
	if len(o.tasks) == 0 {
		s.unregister(o)
	}
	s.Clock.Cancel(t)
	if t.stop == nil {
		o.over = append(o.over, t.spec)
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
		return // nothing was going on: whoever ended it knows
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

// rest notes that the task is not moving anymore, or that nobody is to wait
// until it is not.
func (t *Task) rest() {
	if t.moving {
		t.moving = false
		t.object.set.rests()
	}
}

// say logs a line about the task.
func (t *Task) say(then *deeds, at func(*slog.Logger, string, ...any), text string, attrs ...any) {
	o, body := t.object, t.object.body
	var log *slog.Logger
	if t.run != nil {
		log = t.run.log
	}
	then.add(func() {
		if log == nil {
			log = o.again(body).Log
		}
		at(log, text, append([]any{"handler", t.spec.ID}, attrs...)...)
	})
}
