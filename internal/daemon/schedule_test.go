package daemon

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheTimeOfTheNextCall(t *testing.T) {
	zero := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return zero.Add(time.Duration(seconds) * time.Second) }
	const s = time.Second
	every10 := Spec{Timer: true, Interval: 10 * s}
	sharp10 := Spec{Timer: true, Interval: 10 * s, Sharp: true}
	idle5 := Spec{Timer: true, Idle: 5 * s}
	once := Spec{Timer: true}

	cases := map[string]struct {
		spec    Spec
		timing  timing
		touched int
		now     int
		want    int // -1 means never
	}{
		"a daemon at once":                        {Spec{}, timing{from: at(3)}, 0, 3, 3},
		"a daemon after its initial delay":        {Spec{}, timing{from: at(9)}, 0, 3, 9},
		"a daemon after a failure":                {Spec{}, timing{phase: failed, started: at(1), from: at(3), pause: 4 * s}, 0, 3, 7},
		"a daemon is not called again":            {Spec{}, timing{phase: done, started: at(1), from: at(3)}, 9, 3, -1},
		"an interval counts from the end":         {every10, timing{phase: done, started: at(1), from: at(4)}, 0, 4, 14},
		"a sharp interval counts from the start":  {sharp10, timing{phase: done, started: at(1), from: at(4)}, 0, 4, 11},
		"a sharp call as long as the interval":    {sharp10, timing{phase: done, started: at(0), from: at(10)}, 0, 10, 20},
		"a sharp call longer than the interval":   {sharp10, timing{phase: done, started: at(0), from: at(33)}, 0, 33, 40},
		"failures override the interval":          {every10, timing{phase: failed, started: at(1), from: at(4), pause: s}, 0, 4, 5},
		"a chosen pause replaces the interval":    {sharp10, timing{phase: chosen, started: at(1), from: at(4), pause: 33 * s}, 0, 4, 37},
		"a chosen pause repeats a single call":    {once, timing{phase: chosen, started: at(1), from: at(4), pause: 2 * s}, 0, 4, 6},
		"a single call":                           {once, timing{phase: done, started: at(1), from: at(4)}, 0, 4, -1},
		"idling starts with the first sight":      {idle5, timing{from: at(0)}, 0, 0, 5},
		"idling and the initial delay overlap":    {idle5, timing{from: at(8)}, 0, 0, 8},
		"once until something changes":            {idle5, timing{phase: done, started: at(5), from: at(6)}, 5, 6, -1},
		"again after a change":                    {idle5, timing{phase: done, started: at(5), from: at(6)}, 9, 9, 14},
		"a change during a long call":             {idle5, timing{phase: done, started: at(5), from: at(30)}, 9, 30, 30},
		"failures also wait for idling":           {idle5, timing{phase: failed, started: at(5), from: at(5), pause: 2 * s}, 6, 6, 11},
		"an immediate call is requested":          {idle5, timing{phase: done, hurried: true, started: at(5), from: at(6)}, 5, 7, 7},
		"an overdue call is due now":              {every10, timing{phase: done, started: at(1), from: at(4)}, 0, 99, 99},
		"idling does not apply to daemons":        {Spec{Idle: 5 * s}, timing{from: at(0)}, 0, 0, 0},
		"a change at the very start of a call":    {idle5, timing{phase: done, started: at(5), from: at(5)}, 5, 5, -1},
		"an interval extended by idling":          {Spec{Timer: true, Interval: 3 * s, Idle: 5 * s}, timing{phase: done, started: at(8), from: at(8)}, 10, 10, 15},
		"an interval not affected by idling":      {Spec{Timer: true, Interval: 7 * s, Idle: 5 * s}, timing{phase: done, started: at(8), from: at(8)}, 9, 9, 15},
		"a chosen pause of zero waits for idling": {idle5, timing{phase: chosen, started: at(5), from: at(5)}, 4, 5, 9},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := c.spec.next(c.timing, at(c.touched), at(c.now))
			if !ok && c.want >= 0 || ok && !got.Equal(at(c.want)) {
				t.Errorf("got %v (%v), want %d s", got.Sub(zero), ok, c.want)
			}
		})
	}
}

// TestSchedulesMatchKopf runs random timers with random changes, once with a
// literal port of Kopf's loop, which sleeps, and once with the function that decides
// about the next call.
func TestSchedulesMatchKopf(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		some := func(values ...int) int { return values[r.IntN(len(values))] }
		p := play{
			interval: some(0, 0, 3, 10), idle: some(0, 0, 5, 8), initial: some(0, 0, 4, 12), sharp: r.IntN(2) == 0, until: 120,
		}
		for range some(0, 1, 4) {
			p.changes = append(p.changes, r.IntN(p.until))
		}
		slices.Sort(p.changes)
		for range p.until {
			p.takes = append(p.takes, some(0, 0, 1, 3, 10, 17))
			p.fails = append(p.fails, some(-1, -1, -1, 0, 2, 6))
			if p.takes[len(p.takes)-1] == 0 && p.fails[len(p.fails)-1] == 0 {
				p.fails[len(p.fails)-1] = 1 // otherwise it never ends
			}
		}
		if diff := cmp.Diff(p.asKopf(), p.asWe()); diff != "" {
			t.Fatalf("seed %d: %+v\n-kopf +we\n%s", seed, p, diff)
		}
	}
}

// play is a timer with its events, in seconds.
type play struct {
	interval, idle, initial int
	sharp                   bool
	changes                 []int
	takes                   []int // duration of each call
	fails                   []int // pause after each failed call; -1 if it succeeds
	until                   int
}

// reset returns the time of the last change up to now.
func (p play) reset(now int) int {
	at := 0
	for _, c := range p.changes {
		if c <= now {
			at = c
		}
	}
	return at
}

func (p play) asKopf() (calls []string) {
	now := p.initial
	for now < p.until {
		if p.idle > 0 {
			for now-p.reset(now) < p.idle {
				now = p.reset(now) + p.idle
			}
		}
		if now >= p.until {
			break
		}
		started, n := now, len(calls)
		calls = append(calls, fmt.Sprint(now))
		now += p.takes[n]
		switch {
		case p.fails[n] >= 0:
			now += p.fails[n]
		case p.interval > 0 && p.sharp:
			now += p.interval - (now-started)%p.interval
		case p.interval > 0:
			now += p.interval
		case p.idle > 0:
			for p.reset(now) <= started && now < p.until {
				now += p.idle
			}
		default:
			return calls
		}
	}
	return calls
}

func (p play) asWe() (calls []string) {
	zero := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return zero.Add(time.Duration(seconds) * time.Second) }
	spec := &Spec{
		Timer: true, Interval: time.Duration(p.interval) * time.Second, Idle: time.Duration(p.idle) * time.Second, Sharp: p.sharp,
	}
	state := timing{from: at(p.initial)}
	for now := 0; now < p.until; {
		due, ok := spec.next(state, at(p.reset(now)), at(now))
		if !ok || due.After(at(now)) {
			now++
			continue
		}
		n := len(calls)
		calls = append(calls, fmt.Sprint(now))
		state.started = at(now)
		now += p.takes[n]
		state.from, state.phase = at(now), done
		if p.fails[n] >= 0 {
			state.phase, state.pause = failed, time.Duration(p.fails[n])*time.Second
		}
	}
	return calls
}
