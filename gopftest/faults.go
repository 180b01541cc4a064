package gopftest

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Fault is a failure injected by [Cluster.Fault]. It lasts until Stop is called or the
// time of [Match.During] is over.
type Fault struct {
	match   Match
	effects []Effect
	since   time.Time
	stopped chan struct{}

	mu       sync.Mutex
	requests int // matching requests so far
	events   int
	struck   int
	over     bool
}

// Fault injects a failure into the requests selected by m:
//
//	cluster.Fault(gopftest.Writes("pods").First(2), gopftest.Fail(503))
//
// The first effect is the outermost: with Hold and Fail, a request waits and then fails.
// If several faults match one request, the oldest is the outermost.
//
// Effects on events apply to the watches whose opening request matches, even if they
// were opened before the fault. For these effects, Nth, First and From count the objects
// in the watches.
func (c *Cluster) Fault(m Match, effects ...Effect) *Fault {
	c.memoryOnly("Fault")
	f := &Fault{match: m, effects: effects, since: time.Now(), stopped: make(chan struct{})}
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.faults.set = append(c.faults.set, f)
	return f
}

// Stop ends the fault: later requests are not affected, and held requests continue.
func (f *Fault) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.over = true
		close(f.stopped)
	}
}

// Struck returns how many requests or events the fault has affected so far.
func (f *Fault) Struck() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.struck
}

// faults holds all faults of a cluster.
type faults struct {
	mu  sync.Mutex
	set []*Fault
}

// strike is one effect to apply now.
type strike struct {
	Effect
	fault *Fault
}

// onRequest returns the effects to apply to a request, outermost first.
func (fs *faults) onRequest(r Request) []strike {
	return fs.collect(r, func(f *Fault) *int { return &f.requests }, func(e Effect) bool { return e.around != nil })
}

// onEvent returns the effects to apply to an event of the watch opened by r.
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

// hits counts the request, and reports whether it is affected.
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

// freezes returns the fault that withholds the bookmarks of the watch opened by r, or nil.
// Bookmarks are not counted, so faults with Nth, First or From never withhold them.
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

// wait waits for until or for the end of the fault. It returns false if the client or
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

// end returns a channel that fires when the fault expires. nil means that it does not expire.
func (f *Fault) end() <-chan time.Time {
	if f.match.during == 0 {
		return nil
	}
	return time.After(time.Until(f.since.Add(f.match.during)))
}
