package engine

import (
	"context"
	"time"
)

// An API that has not answered for a minute counts as one that does not. Nobody
// knows that of an operator which has nothing to ask, so it asks for something
// small: at such times, after such a silence.
const (
	inquiring  = 15 * time.Second
	longEnough = 30 * time.Second
	inquiry    = 10 * time.Second // how long that may take
)

// inquire keeps it known whether the API answers, until the context is done.
func (v *vitals) inquire(ctx context.Context, ask func(context.Context)) {
	ticker := time.NewTicker(inquiring)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if time.Since(moment(v.answered.Load())) >= longEnough {
			limited, cancel := context.WithTimeout(ctx, inquiry)
			ask(limited)
			cancel()
		}
	}
}

// inquire keeps health from taking silence for an outage, where anybody looks at
// it.
func (s *server) inquire(ctx context.Context) {
	if s.Health.Address == "" && s.Health.Liveness == "" {
		return
	}
	client := s.client.WithBackoffs(nil).Reserved(forProbes)
	s.vitals.inquire(ctx, func(ctx context.Context) {
		_, _ = client.Version(ctx) // whatever it says, it was observed
	})
}
