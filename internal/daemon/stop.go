package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/execute"
)

// halt asks the task to stop. One that waits is gone at once, unless there is
// something that could not be written yet: that is tried again now.
func (t *Task) halt(why error, now time.Time, then *deeds) {
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

// advance takes the stages of the stop that have come, and tells when the next
// one will.
func (t *Task) advance(now time.Time, then *deeds) (next time.Time, more bool) {
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

// take takes one stage.
func (t *Task) take(what stage, then *deeds) {
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

// abandon goes on without the task: nobody waits for it anymore.
func (t *Task) abandon(then *deeds) {
	t.stop.abandoned = true
	t.say(then, (*slog.Logger).Warn, t.spec.name()+" did not exit in time. Leaving it orphaned.")
	t.rest()
	then.add(t.object.wake)
}

// Pause stops all tasks and lets none be spawned until Resume. It does not wait:
// see Settle.
func (s *Set) Pause() { s.haltAll(ErrPaused) }

// Resume lets tasks be spawned again, at the next sight of their objects.
func (s *Set) Resume() { s.halted.Store(nil) }

// Exit stops all tasks for good and waits for them until the context is done.
// What is left then is cancelled and abandoned. The context should have at least
// as much time as [Set.Patience], unless users are not to get what they declared.
func (s *Set) Exit(ctx context.Context) {
	s.haltAll(execute.ErrStopping) //nolint:contextcheck // calls have contexts of their own
	defer s.die()
	if s.Settle(ctx) == nil {
		return
	}
	s.each(func(t *Task, then *deeds) {
		if t.stop != nil && !t.stop.cancelled {
			t.take(cancelling, then)
		}
	})
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), instant)
	defer cancel()
	_ = s.Settle(last)
	s.each(func(t *Task, then *deeds) {
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

// each does something about each task.
func (s *Set) each(do func(*Task, *deeds)) {
	for _, o := range s.snapshot() {
		var then deeds
		o.mu.Lock()
		for _, t := range o.tasks {
			do(t, &then)
		}
		o.mu.Unlock()
		then.do()
	}
}
