package admission

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRetriesOfConfigurationsHaveJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pauses{jitter: func() float64 { return 0.5 }}
		for _, want := range []time.Duration{900, 1800, 3600, 7200, 14400, 28800, 54000, 54000} {
			began := time.Now()
			p.afterFailure(t.Context())
			if got := time.Since(began); got != want*time.Millisecond {
				t.Errorf("after failure #%d: got %s, want %s", p.failures, got, want*time.Millisecond)
			}
		}
	})
}

func TestRestorationsOfConfigurationsHaveJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pauses{jitter: func() float64 { return 0.5 }}
		if at := p.nextRestoration(); !at.IsZero() {
			t.Errorf("the first restoration waits until %s", at)
		}
		for _, want := range []time.Duration{900, 1800, 3600, 7200} {
			p.restored()
			if got := time.Until(p.nextRestoration()); got != want*time.Millisecond || got != time.Until(p.nextRestoration()) {
				t.Errorf("after restoration #%d: got %s, want %s", p.restorations, got, want*time.Millisecond)
			}
		}
	})
}
