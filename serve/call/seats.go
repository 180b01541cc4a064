package call

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// yieldInterval is the least time between two programs that are stopped for other namespaces.
// Tenants can create and delete objects to stop programs of others: this limits how often.
const yieldInterval = 10 * time.Second

// errYield is the cause of the end of a seat that another namespace needs.
var errYield = errors.New("other namespaces wait for a program")

// seats limit the daemons that run at the same time. Unlike the slots of calls, they are held
// as long as objects exist. So it is not enough that namespaces take turns.
//
// # Guarantees
//
// A namespace has at most three quarters of the seats. If there are two or more, one is left
// for others. A free seat goes to the namespace that has the fewest. If there is none, the
// namespace with the most seats must give one back, unless the other one would then have more.
// So a namespace gets a seat if there are no more namespaces than seats.
//
// # Caveats
//
// One seat is given back at a time, and at most one in 10 s.
type seats struct {
	size, most int

	mu      sync.Mutex
	used    int
	held    map[string][]*seat // by namespace; the newest is the last
	waiting map[string][]*seat // by namespace, in the order of arrival
	arrived int64
	leaving *seat     // the seat that is given back for another namespace; nil means none
	yielded time.Time // when the last one was reclaimed
	again   *time.Timer
}

// seat is the place of one daemon.
type seat struct {
	namespace string
	number    int64         // the order of arrival
	ready     chan struct{} // closed when the daemon may run
	stop      context.CancelCauseFunc
}

// newSeats returns n seats, but at least one.
func newSeats(n int) *seats {
	n = max(n, 1)
	return &seats{size: n, most: max(1, min(n-1, n-n/4)), held: map[string][]*seat{}, waiting: map[string][]*seat{}}
}

// take waits for a seat. The returned context ends with ctx, and with the cause [errYield] if
// another namespace needs the seat. The caller must then call leave soon. wait is called
// if there is no seat yet, and then once per interval.
func (s *seats) take(ctx context.Context, namespace string, interval time.Duration, wait func()) (inside context.Context, leave func(), err error) {
	inside, stop := context.WithCancelCause(ctx)
	own := &seat{namespace: namespace, ready: make(chan struct{}), stop: stop}
	s.mu.Lock()
	s.arrived++
	own.number = s.arrived
	s.waiting[namespace] = append(s.waiting[namespace], own)
	s.serve()
	s.mu.Unlock()
	leave = func() {
		s.leave(own)
		stop(nil)
	}
	select {
	case <-own.ready:
		return inside, leave, nil
	default:
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		wait()
		select {
		case <-own.ready:
			return inside, leave, nil
		case <-ctx.Done():
			leave()
			return nil, nil, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// leave removes a seat that is held or awaited.
func (s *seats) leave(own *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !remove(s.waiting, own) {
		remove(s.held, own)
		s.used--
	}
	if s.leaving == own {
		s.leaving = nil
	}
	s.serve()
}

// remove reports whether the seat was in the map.
func remove(of map[string][]*seat, own *seat) bool {
	i := slices.Index(of[own.namespace], own)
	if i < 0 {
		return false
	}
	if of[own.namespace] = slices.Delete(of[own.namespace], i, i+1); len(of[own.namespace]) == 0 {
		delete(of, own.namespace)
	}
	return true
}

// serve gives free seats to the daemons that wait. The lock must be held.
func (s *seats) serve() {
	for {
		next := s.next()
		if next == nil {
			return
		}
		if s.used == s.size {
			s.reclaim(len(s.held[next.namespace]))
			return
		}
		remove(s.waiting, next)
		s.used++
		s.held[next.namespace] = append(s.held[next.namespace], next)
		close(next.ready)
	}
}

// next returns the daemon that gets the next seat: the first one of the namespace with the
// fewest seats. nil means none.
func (s *seats) next() (next *seat) {
	for namespace, line := range s.waiting {
		n := len(s.held[namespace])
		if n >= s.most {
			continue
		}
		if next == nil {
			next = line[0]
		} else if least := len(s.held[next.namespace]); n < least || n == least && line[0].number < next.number {
			next = line[0]
		}
	}
	return next
}

// reclaim stops the newest daemon of the namespace with the most seats, if it has at least two
// more than the one that waits, which has n.
func (s *seats) reclaim(n int) {
	if s.leaving != nil {
		return
	}
	var most []*seat
	for _, held := range s.held {
		if len(held) > len(most) || len(held) == len(most) && held[0].number > most[0].number {
			most = held
		}
	}
	if len(most) < n+2 {
		return
	}
	if rest := yieldInterval - time.Since(s.yielded); rest > 0 && !s.yielded.IsZero() {
		if s.again == nil {
			s.again = time.AfterFunc(rest, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.again = nil
				s.serve()
			})
		}
		return
	}
	s.leaving, s.yielded = most[len(most)-1], time.Now()
	s.leaving.stop(errYield)
}
