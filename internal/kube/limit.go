package kube

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// InFlight limits concurrent requests adaptively. The limit is halved when the server
// is overloaded, and grows slowly while successful requests use it up. It grows beyond Start
// only while the responses are fast: more requests make a busy server slower for all its clients.
type InFlight struct {
	Start    int // Default: 32.
	Min, Max int // Default: 1 and 256.
}

// slowResponse is the time from which a response is slow.
const slowResponse = 500 * time.Millisecond

// stuckAfter is the time without a free slot after which slow requests count as having all slots.
const stuckAfter = time.Second

// adapt returns the limit after a request has finished. busy is the number of requests
// in flight, including this one.
func (b InFlight) adapt(limit float64, busy int, took time.Duration, overloaded bool) float64 {
	if overloaded {
		return max(limit/2, float64(b.Min))
	}
	if took >= slowResponse && limit >= float64(b.Start) {
		return limit
	}
	// A success proves something about the limit only if the limit was used.
	if float64(busy) < limit/2 {
		return limit
	}
	return min(limit+1/limit, float64(b.Max))
}

// tenantKey is the context key of the namespace that a request is made for.
type tenantKey struct{}

// For returns a context for requests that are made for an object of the namespace. They count
// as requests of that namespace, whatever namespaces they read and write. Otherwise one tenant
// could occupy the share of a namespace that the handlers of all tenants read, or delay the
// requests of cluster-scoped objects to its namespace. For these, namespace is empty.
func For(ctx context.Context, namespace string) context.Context {
	return context.WithValue(ctx, tenantKey{}, cmp.Or(namespace, clusterScoped))
}

// clusterScoped is the tenant of all cluster-scoped objects. No namespace can have this name.
const clusterScoped = "/"

// tenantOf returns the namespace that a request counts for.
func tenantOf(ctx context.Context, target string) string {
	if namespace, ok := ctx.Value(tenantKey{}).(string); ok {
		return namespace
	}
	return target
}

// limiter hands out slots for requests. Namespaces take turns, and one namespace has at most
// three quarters of the slots, so many slow requests for the objects of one tenant do not delay
// those for others. If slow requests of several tenants have all slots, each other namespace can
// have one request beyond the limit, up to as many as the limit at the start. The requests of one
// namespace are served in order of arrival.
type limiter struct {
	bounds InFlight
	strict bool // no request goes beyond the limit

	mu      sync.Mutex
	limit   float64
	busy    int
	held    map[string]int             // the requests in flight, by namespace
	moved   time.Time                  // when a slot within the limit was taken last
	cuts    int                        // number of times that the limit was halved
	quick   time.Time                  // when a request succeeded last whose response was not slow
	waiting map[string][]chan struct{} // by namespace; each is closed when its slot is granted
	order   []string                   // the namespaces in waiting; the first is served next
}

// slot is the permission to send one request.
type slot struct {
	cuts      int
	namespace string
	began     time.Time
}

func newLimiter(b InFlight) *limiter {
	b.Min = max(b.Min, 1)
	b.Max = max(b.Max, b.Min)
	b.Start = min(max(b.Start, b.Min), b.Max)
	return &limiter{bounds: b, limit: float64(b.Start), waiting: map[string][]chan struct{}{}, held: map[string]int{}}
}

// acquire waits for a slot for a request in the namespace. The caller must release it.
func (l *limiter) acquire(ctx context.Context, namespace string) (slot, error) {
	l.mu.Lock()
	if len(l.waiting[namespace]) == 0 && l.free(namespace) { // those that wait have all of their slots
		l.take(namespace)
		defer l.mu.Unlock()
		return slot{l.cuts, namespace, time.Now()}, nil
	}
	granted := make(chan struct{})
	if len(l.waiting[namespace]) == 0 {
		l.order = append(l.order, namespace)
	}
	l.waiting[namespace] = append(l.waiting[namespace], granted)
	l.mu.Unlock()

	again := time.NewTimer(stuckAfter)
	defer again.Stop()
	for {
		select {
		case <-granted:
			l.mu.Lock()
			defer l.mu.Unlock()
			return slot{l.cuts, namespace, time.Now()}, nil
		case <-again.C:
			l.mu.Lock()
			l.grant()
			l.mu.Unlock()
			again.Reset(stuckAfter)
		case <-ctx.Done():
			l.abandon(namespace, granted)
			return slot{}, context.Cause(ctx)
		}
	}
}

// load returns the limit, the requests in flight and the waiting requests.
func (l *limiter) load() (limit float64, busy, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.waiting {
		waiting += len(line)
	}
	return l.limit, l.busy, waiting
}

func (l *limiter) abandon(namespace string, granted chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.waiting[namespace]
	if i := slices.Index(line, granted); i >= 0 {
		l.waiting[namespace] = slices.Delete(line, i, i+1)
		if len(line) == 1 {
			delete(l.waiting, namespace)
			l.order = slices.DeleteFunc(l.order, func(other string) bool { return other == namespace })
		}
		return
	}
	// The slot was granted at the same moment; pass it on.
	l.give(namespace)
	l.grant()
}

// free reports whether there is a slot for the namespace.
func (l *limiter) free(namespace string) bool {
	limit := int(l.limit)
	if l.busy < limit {
		return l.held[namespace] < limit-limit/4
	}
	return !l.strict && l.held[namespace] == 0 && l.busy < limit+l.bounds.Start && time.Since(l.moved) >= stuckAfter
}

func (l *limiter) take(namespace string) {
	l.busy++
	l.held[namespace]++
	if l.busy <= int(l.limit) {
		l.moved = time.Now()
	}
}

func (l *limiter) give(namespace string) {
	l.busy--
	if l.held[namespace]--; l.held[namespace] == 0 {
		delete(l.held, namespace)
	}
}

// release returns a slot and adapts the limit to the result of its request.
func (l *limiter) release(s slot, learnt learnt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case learnt == unanswered && l.quick.After(s.began):
		// The server is fast for others. The object may be slow because of its webhooks.
	case (learnt == overloaded || learnt == unanswered) && s.cuts == l.cuts:
		// Only the first rejection under one limit counts, or one burst of rejections
		// would reduce the limit to its minimum.
		l.cuts++
		l.limit = l.bounds.adapt(l.limit, l.busy, time.Since(s.began), true)
	case learnt == succeeded:
		took := time.Since(s.began)
		l.limit = l.bounds.adapt(l.limit, l.busy, took, false)
		if took < slowResponse {
			l.quick = time.Now()
		}
	}
	l.give(s.namespace)
	l.grant()
}

// grant gives slots to those that wait.
func (l *limiter) grant() {
	for {
		next := slices.IndexFunc(l.order, l.free)
		if next < 0 {
			return
		}
		namespace := l.order[next]
		l.order = slices.Delete(l.order, next, next+1)
		line := l.waiting[namespace]
		l.take(namespace)
		close(line[0])
		if len(line) == 1 {
			delete(l.waiting, namespace)
		} else {
			l.waiting[namespace] = line[1:]
			l.order = append(l.order, namespace)
		}
	}
}

// learnt is the conclusion about the server's load from a finished request.
type learnt int

const (
	nothing learnt = iota
	succeeded
	overloaded
	unanswered // in time
)
