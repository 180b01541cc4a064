package engine

import (
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
)

// entrance returns the check that every call of a handler, daemon or timer passes: the
// limit of concurrent change and event handlers, and the write gate. The write gate
// matters for a leader whose process was suspended: its lease is expired when it
// continues, and queued calls must not start.
func (s *server) entrance() *execute.Entrance {
	limited := append(s.Handlers.Of(handler.Changes), s.Handlers.Of(handler.Events)...)
	e := execute.NewEntrance(limited, s.MaxWorkers)
	if s.Election.Enabled {
		e.Open = func() bool {
			_, err := s.writeGate.ask()
			return err == nil
		}
	}
	return e
}
