package backoff_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/backoff"
)

func TestDelaysDoubleUpToTheLimit(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		first, most time.Duration
		want        []time.Duration // after 0 failures, 1 failure, and so on
	}{
		"to a multiple":      {s, 8 * s, []time.Duration{0, s, 2 * s, 4 * s, 8 * s, 8 * s}},
		"to another limit":   {s, 5 * s, []time.Duration{0, s, 2 * s, 4 * s, 5 * s, 5 * s}},
		"the limit is first": {5 * s, s, []time.Duration{0, s, s, s}},
		"one delay":          {s, s, []time.Duration{0, s, s}},
		"no delay":           {0, s, []time.Duration{0, 0, 0, 0}},
		"no limit":           {math.MaxInt64/2 + 1, math.MaxInt64, []time.Duration{0, math.MaxInt64/2 + 1, math.MaxInt64, math.MaxInt64}},
	} {
		t.Run(name, func(t *testing.T) {
			b := backoff.Backoff{First: c.first, Most: c.most}
			var got []time.Duration
			for n := range c.want {
				got = append(got, b.After(n))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if got := b.After(math.MaxInt); got != c.want[len(c.want)-1] {
				t.Errorf("in the end: %s", got)
			}
		})
	}
	if got := (backoff.Backoff{First: s, Most: s}).After(-1); got != 0 {
		t.Errorf("after -1 failures: %s", got)
	}
}

func TestSleepEndsWithTheDelayTheSignalOrTheContext(t *testing.T) {
	gone := errors.New("gone")
	for name, c := range map[string]struct {
		wake, cancel time.Duration // 0 means never
		want         string
	}{
		"the delay":   {0, 0, "1m0s <nil>"},
		"the signal":  {time.Second, 0, "1s <nil>"},
		"the context": {0, 2 * time.Second, "2s gone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				wake := make(chan struct{})
				if c.wake > 0 {
					time.AfterFunc(c.wake, func() { close(wake) })
				}
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, func() { cancel(gone) })
				}
				began := time.Now()
				err := backoff.SleepOrWake(ctx, time.Minute, wake)
				if got := fmt.Sprint(time.Since(began), " ", err); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestSleepWithoutASignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := backoff.Sleep(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
	})
}
