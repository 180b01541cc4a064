package engine

import (
	"context"
	"time"
)

// Health treats an API server that was silent for a minute as unreachable. An idle
// operator sends no requests, so it probes the API server after a shorter silence.
const (
	probeInterval = 15 * time.Second // of the checks for silence
	probeAfter    = 30 * time.Second // of silence
	probeTimeout  = 10 * time.Second
)

// inquire calls ask whenever the API server was silent for probeAfter, until the context
// is done. ask must send a request that [vitals.request] observes.
func (v *vitals) inquire(ctx context.Context, ask func(context.Context)) {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if time.Since(moment(v.answered.Load())) >= probeAfter {
			limited, cancel := context.WithTimeout(ctx, probeTimeout)
			ask(limited)
			cancel()
		}
	}
}

// inquire probes the API server while the operator is idle. Otherwise health would
// report an outage. It does nothing without health endpoints.
func (s *server) inquire(ctx context.Context) {
	if s.Health.Address == "" && s.Health.Liveness == "" {
		return
	}
	client := s.client.WithBackoffs(nil).Reserved(forProbes)
	s.vitals.inquire(ctx, func(ctx context.Context) {
		_, _ = client.Version(ctx) // the client's observer notes any response
	})
}
