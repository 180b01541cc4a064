package gopftest

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Fault is something that goes wrong, from [Cluster.Fault] until it is stopped.
type Fault struct {
	match   Match
	effects []Effect
	since   time.Time
	stopped chan struct{}

	mu       sync.Mutex
	requests int // that fit so far
	events   int
	struck   int
	over     bool
}

// Fault makes requests that match go wrong. With several effects, the first is the
// outermost: Hold, then Fail waits and then fails. Of several faults that match
// the same request, the older one is the outer one.
//
// Effects on events of streams look at the request that opened the stream, which
// may be older than the fault; what they count are the objects in such streams.
func (c *Cluster) Fault(m Match, effects ...Effect) *Fault {
	c.memoryOnly("Fault")
	f := &Fault{match: m, effects: effects, since: time.Now(), stopped: make(chan struct{})}
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.faults.set = append(c.faults.set, f)
	return f
}

// Stop ends the fault: no further request is struck, and those that it holds go on.
func (f *Fault) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.over = true
		close(f.stopped)
	}
}

// Struck returns how many requests, or events, the fault has struck so far.
func (f *Fault) Struck() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.struck
}

// faults are all that were set in a cluster.
type faults struct {
	mu  sync.Mutex
	set []*Fault
}

// strike is an effect that is to happen now.
type strike struct {
	Effect
	fault *Fault
}

// onRequest returns what is to happen to a request, outermost first.
func (fs *faults) onRequest(r Request) []strike {
	return fs.collect(r, func(f *Fault) *int { return &f.requests }, func(e Effect) bool { return e.around != nil })
}

// onEvent returns what is to happen to an event of the stream that r opened.
func (fs *faults) onEvent(r Request) []strike {
	return fs.collect(r, func(f *Fault) *int { return &f.events }, func(e Effect) bool { return e.pass != nil })
}

func (fs *faults) collect(r Request, counter func(*Fault) *int, kind func(Effect) bool) []strike {
	fs.mu.Lock()
	set := slices.Clone(fs.set)
	fs.mu.Unlock()
	var strikes []strike
	for _, f := range set {
		if slices.ContainsFunc(f.effects, kind) && f.hits(r, counter) {
			for _, e := range f.effects {
				if kind(e) {
					strikes = append(strikes, strike{e, f})
				}
			}
		}
	}
	return strikes
}

// hits counts the request in, and says whether it is struck.
func (f *Fault) hits(r Request, counter func(*Fault) *int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || f.match.during > 0 && time.Since(f.since) >= f.match.during || !f.match.fits(r) {
		return false
	}
	n := counter(f)
	*n++
	if !f.match.keeps(*n) {
		return false
	}
	f.struck++
	return true
}

// freezes says whether bookmarks in the stream that r opened are withheld, too.
// They are not counted, so that only faults that count nothing withhold them.
func (fs *faults) freezes(r Request) *Fault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.set {
		if f.match.first == 0 && f.lasts() && f.match.fits(r) && slices.ContainsFunc(f.effects, func(e Effect) bool { return e.freeze }) {
			return f
		}
	}
	return nil
}

func (f *Fault) lasts() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.over && (f.match.during == 0 || time.Since(f.since) < f.match.during)
}

// wait waits until the time is over or the fault is stopped; false if the client or
// the cluster is gone before.
func (f *Fault) wait(ctx context.Context, c *Cluster, until <-chan time.Time) bool {
	select {
	case <-until:
		return true
	case <-f.stopped:
		return true
	case <-ctx.Done():
		return false
	case <-c.closed:
		return false
	}
}

// end is when a fault that lasts for a time is over; it never comes for others.
func (f *Fault) end() <-chan time.Time {
	if f.match.during == 0 {
		return nil
	}
	return time.After(time.Until(f.since.Add(f.match.during)))
}
