package progress

import (
	"testing"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/storage"
)

// wall strips the monotonic clock from a time, as storing it does.
func wall(t time.Time) time.Time { return t.Round(0).Truncate(time.Microsecond) }

func TestARecordDelaysNoLongerThanItsDelay(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		delayed time.Time
		delay   time.Duration
		want    time.Duration
	}{
		"not delayed":                           {},
		"the clocks are the same":               {now.Add(50 * time.Second), time.Minute, 50 * time.Second},
		"the delay is over":                     {now.Add(-time.Second), time.Minute, 0},
		"the clock was set back by an hour":     {now.Add(time.Hour + 50*time.Second), time.Minute, time.Minute},
		"the clock was set forward":             {now.Add(-time.Hour), time.Minute, 0},
		"from Kopf, or from an earlier version": {now.Add(time.Hour), 0, time.Hour},
		"from Kopf, over":                       {now.Add(-time.Hour), 0, 0},
		"the delay is longer than what is left": {now.Add(time.Minute), time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r := storage.Record{Delayed: c.delayed, Delay: c.delay}
			if got := left(r, now); !c.delayed.IsZero() && got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			state := New(map[string]storage.Record{"h": r})
			if got := state.Delay([]string{"h"}, now); got.Is != c.want {
				t.Errorf("the state waits for %s, want %s", got.Is, c.want)
			}
			if due := len(state.Due([]string{"h"}, now)) > 0; due != (c.want == 0) {
				t.Errorf("due: %v", due)
			}
		})
	}
}

func TestADelayCountsFromTheFirstReading(t *testing.T) {
	first := time.Now()
	stored := map[string]storage.Record{"h": {Delayed: wall(first.Add(time.Hour)), Delay: time.Minute, Purpose: "create"}}
	var known Delays
	for _, c := range []struct{ later, want time.Duration }{
		{0, time.Minute}, {20 * time.Second, 40 * time.Second}, {time.Minute, 0}, {2 * time.Minute, 0},
	} {
		state := New(stored) // each turn reads the record again
		state.Remember(known)
		now := first.Add(c.later)
		if got := state.Delay([]string{"h"}, now); !got.Set || got.Is != c.want {
			t.Errorf("after %s: got %s, want %s", c.later, got.Is, c.want)
		}
		known = state.Delays(now)
	}
	// Another delay of the same handler counts from its own first reading.
	stored["h"] = storage.Record{Delayed: wall(first.Add(2 * time.Hour)), Delay: time.Minute, Purpose: "create"}
	state := New(stored)
	state.Remember(known)
	if got := state.Delay([]string{"h"}, first.Add(2*time.Minute)); got.Is != time.Minute {
		t.Errorf("another delay: got %s", got.Is)
	}
}

func TestAClockSetBackDoesNotProlongADelay(t *testing.T) {
	now := time.Now()
	state := New(nil)
	state.Select([]string{"h"}, cause.Create, now)
	state.Attempted("h", Attempt{Failed: true, Delay: handler.Some(time.Minute)}, now)
	record, known := state.Record("h"), state.Delays(now)
	if record.Delay != time.Minute {
		t.Errorf("the length of the delay is not recorded: %+v", record)
	}
	record.Started, record.Delayed = wall(record.Started), wall(record.Delayed)

	// After the clock is set back, the recorded end is far in the future.
	record.Delayed = record.Delayed.Add(time.Hour)
	shifted := Delays{"h": {recorded: record.Delayed, until: known["h"].until}}
	for later, want := range map[time.Duration]bool{59 * time.Second: false, 60 * time.Second: true} {
		next := New(map[string]storage.Record{"h": record})
		next.Remember(shifted)
		if due := len(next.Due([]string{"h"}, now.Add(later))) > 0; due != want {
			t.Errorf("after %s: due %v, want %v", later, due, want)
		}
	}
}

func TestAnAttemptStartsItsDelayByTheMonotonicClock(t *testing.T) {
	now := time.Now()
	state := New(nil)
	state.Select([]string{"h"}, cause.Create, now)
	state.Attempted("h", Attempt{Failed: true, Delay: handler.Some(time.Minute)}, now)
	later := New(map[string]storage.Record{"h": state.Record("h")})
	later.Remember(state.Delays(now.Add(10 * time.Second)))
	if got := later.Delay([]string{"h"}, now.Add(20*time.Second)); got.Is != 40*time.Second {
		t.Errorf("40 s are left, got %v", got)
	}
	if got := state.Delays(now)["h"]; !got.until.Equal(now.Add(time.Minute)) {
		t.Errorf("got %v", got)
	}
}

func TestDelaysOmitsHandlersWithoutADelay(t *testing.T) {
	now := time.Now()
	state := New(map[string]storage.Record{"done": {Success: true, Delayed: now}, "ready": {}, "delayed": {Delayed: now.Add(time.Hour)}})
	if got := state.Delays(now); len(got) != 1 || got["delayed"].until.IsZero() {
		t.Errorf("got %v", got)
	}
	state.Hasten([]string{"delayed"}, now)
	if got := state.Delays(now); got != nil {
		t.Errorf("after waking: %v", got)
	}
}

func TestAStartInTheFutureCountsAsNow(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct{ started, want time.Time }{
		"past":   {now.Add(-time.Hour), now.Add(-time.Hour)},
		"now":    {now, now},
		"future": {now.Add(time.Hour), now},
	} {
		if got := TimeoutStart(c.started, now); !got.Equal(c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestACopyOfTheStateCountsDelaysFromTheSameReading(t *testing.T) {
	first := time.Now()
	state := New(map[string]storage.Record{"h": {Delayed: wall(first.Add(time.Hour)), Delay: time.Minute, Purpose: "create"}})
	if got := state.Delay([]string{"h"}, first); got.Is != time.Minute {
		t.Errorf("got %s", got.Is)
	}
	if got := state.Clone().Delay([]string{"h"}, first.Add(20*time.Second)); got.Is != 40*time.Second {
		t.Errorf("the copy: got %s", got.Is)
	}
}
