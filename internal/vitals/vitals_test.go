package vitals

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/health"
	"gopf.dev/gopf/internal/metrics"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// idle is an operator that is paused.
type idle struct{}

func (idle) Health(s *health.Snapshot) { s.Idle = "paused by a test" }
func (idle) Gauges() metrics.Gauges    { return metrics.Gauges{Paused: true} }

func TestStartupIsVisibleBeforeTheOperatorRuns(t *testing.T) {
	v := listening(t)
	v.Begin("logging in")
	if s := v.snapshot(); s.Started || s.Starting != "logging in" || v.gauges().Paused {
		t.Errorf("during the startup: %+v", s)
	}
	v.Started(idle{})
	if s := v.snapshot(); !s.Started || s.Idle != "paused by a test" || !v.gauges().Paused {
		t.Errorf("after the startup: %+v", s)
	}
}

func TestRejectedCredentialsAreVisibleSinceTheFirstRejection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := listening(t)
		began := time.Now()
		v.Unauthorized(errors.New("expired"))
		time.Sleep(time.Minute)
		v.Unauthorized(errors.New("still expired"))
		if s := v.snapshot(); !s.Refused.Equal(began) || s.RefusedWhy == nil || s.RefusedWhy.Error() != "still expired" {
			t.Errorf("while they are rejected: since %s, because %v", s.Refused, s.RefusedWhy)
		}
		v.Unauthorized(nil)
		if s := v.snapshot(); !s.Refused.IsZero() || s.RefusedWhy != nil {
			t.Errorf("after a login: since %s, because %v", s.Refused, s.RefusedWhy)
		}
	})
}

func TestWatchesAreVisibleUntilTheyEnd(t *testing.T) {
	v := listening(t)
	v.Started(idle{})
	config := stream.DefaultConfig(kind.Info{Group: "example.com", Version: "v1", Plural: "widgets"}, "ns")
	pulse, end := v.Follow(&config, nil)
	config.Status(stream.Status{State: stream.Watching, Since: time.Now()})
	config.Signs(stream.Heard)
	pulse.Deliver(stream.Event{Type: stream.Synced}, func(stream.Event) {
		if s := v.snapshot().Streams[0]; s.Blocked.IsZero() {
			t.Error("a delivery that is still running is not visible")
		}
	})
	streams := v.snapshot().Streams
	if len(streams) != 1 || streams[0].Resource != "widgets.example.com" || streams[0].Namespace != "ns" ||
		streams[0].State != health.Watching || streams[0].Alive.IsZero() || !streams[0].Blocked.IsZero() {
		t.Errorf("got %+v", streams)
	}
	if g := v.gauges(); len(g.Resources) != 1 || g.Resources[0].Watching != 1 {
		t.Errorf("got the gauges %+v", g.Resources)
	}
	end()
	if streams := v.snapshot().Streams; len(streams) > 0 {
		t.Errorf("left over: %+v", streams)
	}
}
