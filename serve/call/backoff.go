package call

import (
	"sync"
	"time"
)

// tenant has the calls that share a backoff: those for the objects of a namespace. Reviews of
// different clients do not share one, because any network peer can send reviews that name any
// namespace.
type tenant struct{ client, namespace string }

func tenantOf(r *Request) tenant {
	if r.Input.Review != nil {
		return tenant{r.Input.Review.Client, r.Namespace}
	}
	return tenant{namespace: r.Namespace}
}

// Delays after calls that ended a program.
const (
	firstRestart = 100 * time.Millisecond
	lastRestart  = 30 * time.Second
	// forgetDelay is the time after a delay in which another failure doubles it.
	forgetDelay = 30 * time.Second
	// maxBackoffs limits the tenants with a delay. Network peers can invent namespaces.
	maxBackoffs = 1000
)

// grow returns the delay after another failure.
func grow(delay time.Duration) time.Duration { return min(max(2*delay, firstRestart), lastRestart) }

// backoffs delay the calls of tenants whose calls have ended programs. Others do not wait. It is
// safe for concurrent use.
type backoffs struct {
	mu sync.Mutex
	of map[tenant]*backoff
}

// backoff is the state of one tenant.
type backoff struct {
	delay  time.Duration
	failed time.Time     // the last failure that counted
	until  time.Time     // no call before
	over   chan struct{} // closed when a success ends the delay
}

// left returns the rest of the delay. A success of another call ends it early, and closes over.
func (b *backoffs) left(t tenant) (rest time.Duration, over <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.of[t]
	if own == nil {
		return 0, nil
	}
	return max(time.Until(own.until), 0), own.over
}

// suspects reports whether calls of the tenant have ended programs of late.
func (b *backoffs) suspects(t tenant) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of[t] != nil && !b.of[t].forgotten()
}

// fail counts a call that ended its program. Calls that ran at the same time count once: they
// began before the delay. It returns the new delay.
func (b *backoffs) fail(t tenant, began time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.of[t]
	if own == nil || own.forgotten() {
		b.limit()
		own = &backoff{over: make(chan struct{})}
		if b.of == nil {
			b.of = map[tenant]*backoff{}
		}
		b.of[t] = own
	} else if began.Before(own.failed) {
		return own.delay
	}
	own.delay, own.failed = grow(own.delay), time.Now()
	own.until = own.failed.Add(own.delay)
	return own.delay
}

// succeed counts a call that did not end its program. It ends the delay, and the next one
// begins with half of it: a tenant must not get rid of its delays by one good object.
func (b *backoffs) succeed(t tenant, began time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.of[t]
	if own == nil || began.Before(own.failed) {
		return
	}
	close(own.over)
	if own.delay /= 2; own.delay < firstRestart {
		delete(b.of, t)
		return
	}
	own.over, own.until = make(chan struct{}), time.Now()
}

// limit makes room for another tenant. If there are too many, the one that waits least is
// forgotten. The lock must be held.
func (b *backoffs) limit() {
	if len(b.of) < maxBackoffs {
		return
	}
	var least tenant
	first := true
	for t, one := range b.of {
		if one.forgotten() {
			delete(b.of, t)
		} else if first || one.until.Before(b.of[least].until) {
			least, first = t, false
		}
	}
	if len(b.of) >= maxBackoffs {
		delete(b.of, least)
	}
}

// forgotten reports whether the last delay was over long ago.
func (b *backoff) forgotten() bool { return time.Since(b.until) >= forgetDelay }
