package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/execute"
)

// halt asks the task to stop. A waiting task ends at once, unless it has a result that
// could not be written yet: writing is then retried now.
func (t *Task) halt(why error, now time.Time, then *actions) {
	if t.stop != nil {
		return
	}
	t.stop = &stop{
		why: why, since: now,
		grace: t.spec.StopGrace, timeout: t.spec.StopTimeout, polling: t.object.set.polling(t.spec),
	}
	if errors.Is(why, execute.ErrStopping) && t.spec.Timer {
		t.stop.grace = max(t.stop.grace, t.object.set.ExitGrace)
	}
	switch {
	case t.run != nil:
		close(t.run.stopping)
	case t.unsent != nil:
		t.unsent.until = now
	default:
		t.end(then)
		return
	}
	t.proceed(now, then)
}

// suspend asks the task to stop because its object is paused. After the pause, a timer
// continues its schedule.
func (t *Task) suspend(now time.Time, then *actions) {
	t.paused = t.paused || t.stop == nil
	t.halt(ErrPaused, now, then)
}

// advance performs all stages of the stop that are due, and returns the time of the
// next one.
func (t *Task) advance(now time.Time, then *actions) (next time.Time, more bool) {
	for {
		what, at := t.stop.next()
		switch {
		case what == nothing:
			return time.Time{}, false
		case at.After(now):
			return at, true
		}
		t.take(what, then)
	}
}

// take performs one stage.
func (t *Task) take(what stage, then *actions) {
	s, name := t.stop, t.spec.name()
	switch what {
	case telling:
		s.told = true
		t.say(then, (*slog.Logger).Debug, name+" is signalled to exit gracefully.")
	case cancelling:
		if s.cancelled = true; s.forced() {
			t.say(then, (*slog.Logger).Debug, name+" is signalled to exit by force.")
		}
		if r := t.run; r != nil {
			then.add(func() { r.cancel(s.why) })
		}
	case polling:
		s.polls++
		t.say(then, (*slog.Logger).Debug, fmt.Sprintf("%s is still exiting. The next check is in %g seconds.", name, s.polling.Seconds()))
	case abandoning:
		t.abandon(then)
	}
}

// abandon stops waiting for the task.
func (t *Task) abandon(then *actions) {
	t.stop.abandoned = true
	t.say(then, (*slog.Logger).Warn, t.spec.name()+" did not exit in time. Leaving it orphaned.")
	t.rest()
	then.add(t.object.wake)
}

// Pause stops all tasks and prevents new ones until Resume. It does not wait: see Settle.
func (s *Set) Pause() { s.haltAll(ErrPaused) }

// Resume allows spawning tasks again, at the next sight of their objects.
func (s *Set) Resume() { s.halted.Store(nil) }

// Exit stops all tasks permanently and waits for them until ctx ends. Then it cancels
// and abandons the remaining ones. ctx should last at least for [Set.Patience];
// otherwise tasks get less time than declared.
func (s *Set) Exit(ctx context.Context) {
	s.haltAll(execute.ErrStopping) //nolint:contextcheck // calls have their own contexts
	defer s.die()
	if s.Settle(ctx) == nil {
		return
	}
	s.each(func(t *Task, then *actions) {
		if t.stop != nil && !t.stop.cancelled {
			t.take(cancelling, then)
		}
	})
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), instant)
	defer cancel()
	_ = s.Settle(last)
	s.each(func(t *Task, then *actions) {
		if t.stop != nil && !t.stop.abandoned {
			t.abandon(then)
			t.proceed(time.Now(), then)
		}
	})
}

func (s *Set) haltAll(why error) {
	s.halted.Store(&why)
	for _, o := range s.snapshot() {
		o.stopAll(why)
	}
}

// each calls do for each task.
func (s *Set) each(do func(*Task, *actions)) {
	for _, o := range s.snapshot() {
		var then actions
		o.mu.Lock()
		for _, t := range o.tasks {
			do(t, &then)
		}
		o.mu.Unlock()
		then.do()
	}
}
