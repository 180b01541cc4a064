package stream

import "sync/atomic"

// Shared is what all streams of one API server and one process have in common. The
// zero value is ready for use. It must not be copied.
type Shared struct {
	marks atomic.Uint64
}

// Mark returns the next value of a counter that orders what one process learns and
// does: watch events as they arrive, lists as they begin, writes as they end. A
// clock would not do: a list may take any time.
func (s *Shared) Mark() uint64 { return s.marks.Add(1) }
