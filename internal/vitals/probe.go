package vitals

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

// Probe calls ask whenever the API server was silent for probeAfter, until the context
// is done. Otherwise health would report an outage of an idle operator. ask must send a
// request that [Vitals.Request] observes. Probe returns at once without health
// endpoints.
func (v *Vitals) Probe(ctx context.Context, ask func(context.Context)) {
	if v.config.Address == "" && v.config.Liveness == "" {
		return
	}
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
