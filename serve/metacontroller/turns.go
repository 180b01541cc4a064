package metacontroller

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// newQueue returns the queue of a controller's parents. Namespaces take turns, and retries of
// one namespace do not delay those of others.
func newQueue() workqueue.TypedRateLimitingInterface[key] {
	delayed := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[key]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[key]{Queue: &turns{}}),
	})
	limiter := workqueue.NewTypedMaxOfRateLimiter[key](
		workqueue.NewTypedItemExponentialFailureRateLimiter[key](5*time.Millisecond, 1000*time.Second), &retries{})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[key]{DelayingQueue: delayed})
}

// turns is a queue of parents in which the namespaces take turns. Cluster-scoped parents count
// as one namespace. It implements [workqueue.Queue].
type turns struct {
	waiting map[string][]key // by namespace
	next    []string         // the namespaces of waiting
	number  int
}

// Touch does nothing: a parent that is queued again keeps its place.
func (t *turns) Touch(key) {}

// Push adds a parent behind the others of its namespace.
func (t *turns) Push(k key) {
	if t.waiting == nil {
		t.waiting = map[string][]key{}
	}
	if len(t.waiting[k.namespace]) == 0 {
		t.next = append(t.next, k.namespace)
	}
	t.waiting[k.namespace] = append(t.waiting[k.namespace], k)
	t.number++
}

// Len returns the number of parents.
func (t *turns) Len() int { return t.number }

// Pop removes the first parent of the namespace whose turn it is.
func (t *turns) Pop() key {
	return t.take(0)
}

// take removes the first parent of a namespace, by its index in next.
func (t *turns) take(i int) key {
	namespace := t.next[i]
	if i > 0 {
		t.next = slices.Delete(t.next, i, i+1)
	} else {
		t.next[0] = "" // the array keeps no text of a deleted namespace
		t.next = t.next[1:]
	}
	list := t.waiting[namespace]
	first := list[0]
	list[0] = key{}
	if list = list[1:]; len(list) > 0 {
		t.waiting[namespace] = list
		t.next = append(t.next, namespace)
	} else {
		delete(t.waiting, namespace)
	}
	t.number--
	return first
}

// Limits of the retries of a namespace. client-go has the same numbers for a whole queue.
const (
	retryInterval = 100 * time.Millisecond
	retryBurst    = 100
	// manyNamespaces is the number of namespaces after which retries looks for unused entries.
	manyNamespaces = 1000
)

// retries limits the rate of the retries of each namespace. It implements
// [workqueue.TypedRateLimiter]; another limiter counts the failures of a parent.
type retries struct {
	mu   sync.Mutex
	last map[string]time.Time // by namespace; the time of the latest retry at the steady rate
}

// When returns the delay of a retry.
func (r *retries) When(k key) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	oldest := now.Add(-retryBurst * retryInterval)
	if r.last == nil {
		r.last = map[string]time.Time{}
	}
	if len(r.last) > manyNamespaces {
		for namespace, at := range r.last {
			if at.Before(oldest) {
				delete(r.last, namespace)
			}
		}
	}
	at := r.last[k.namespace]
	if at.Before(oldest) {
		at = oldest
	}
	at = at.Add(retryInterval)
	r.last[k.namespace] = at
	return max(0, at.Sub(now))
}

// Forget does nothing.
func (r *retries) Forget(key) {}

// NumRequeues returns 0: the other limiter counts.
func (r *retries) NumRequeues(key) int { return 0 }

// gate limits the number of syncs at a time: of all parents, and of the parents of one
// namespace. A parent that must wait gives its worker back. The namespaces of the waiting parents
// take turns.
type gate struct {
	limit int // for all; 0 means none
	each  int // for a namespace; 0 means none

	mu      sync.Mutex
	busy    int            // slots that are in use or granted
	used    map[string]int // those of a namespace
	granted map[key]bool   // parents that are queued again with a slot
	parked  map[key]bool   // those in waiting
	waiting turns
}

// free reports whether there is a slot for a parent of a namespace. The lock must be held.
func (g *gate) free(namespace string) bool {
	return (g.limit == 0 || g.busy < g.limit) && (g.each == 0 || g.used[namespace] < g.each)
}

// hold counts a slot. The lock must be held.
func (g *gate) hold(namespace string, slots int) {
	if g.used == nil {
		g.used = map[string]int{}
	}
	g.busy += slots
	if g.used[namespace] += slots; g.used[namespace] == 0 {
		delete(g.used, namespace)
	}
}

// enter reports whether a parent got a slot. If not, a later [gate.leave] returns the parent.
func (g *gate) enter(k key) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.granted[k] {
		delete(g.granted, k)
		return true
	}
	if g.parked[k] {
		return false
	}
	if g.free(k.namespace) {
		g.hold(k.namespace, 1)
		return true
	}
	if g.parked == nil {
		g.parked = map[key]bool{}
	}
	g.parked[k] = true
	g.waiting.Push(k)
	return false
}

// has reports whether a parent was granted a slot. It then holds the slot.
func (g *gate) has(k key) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	has := g.granted[k]
	delete(g.granted, k)
	return has
}

// leave gives the slot of a parent back. If another parent may have it, leave grants it the
// slot. The caller must queue that parent.
func (g *gate) leave(k key) (next key, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold(k.namespace, -1)
	i := slices.IndexFunc(g.waiting.next, g.free)
	if i < 0 {
		return key{}, false
	}
	next = g.waiting.take(i)
	delete(g.parked, next)
	if g.granted == nil {
		g.granted = map[key]bool{}
	}
	g.granted[next] = true
	g.hold(next.namespace, 1)
	return next, true
}

// part returns the slots that the parents of one namespace may have. At least one of several
// slots is left for other namespaces.
func (c *controller) part(slots int) int {
	if !slices.ContainsFunc(c.parents, func(p parents) bool { return p.namespaced }) {
		return slots // there are no other namespaces
	}
	return max(1, slots-1)
}
