package engine

import (
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/registry"
)

// entrance makes what every call of a handler, daemon or timer passes: the limit
// of calls of handlers of changes and events, and the gate of the election. A
// leader that was stopped and continued later finds its lease expired there,
// before it calls anything that waited meanwhile.
func (s *server) entrance() *execute.Entrance {
	limited := append(s.Handlers.Of(registry.Changes), s.Handlers.Of(registry.Events)...)
	e := execute.NewEntrance(limited, s.MaxWorkers)
	if s.Election.Enabled {
		e.Open = func() bool {
			_, err := s.gateOfWrites.ask()
			return err == nil
		}
	}
	return e
}
