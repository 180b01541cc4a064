package metacontroller

import (
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
	namespace := t.next[0]
	t.next[0] = "" // the array keeps no text of a deleted namespace
	t.next = t.next[1:]
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

// gate limits the number of syncs of large objects at a time. A parent that must wait gives
// its worker back. The namespaces of the waiting parents take turns.
type gate struct {
	limit int

	mu      sync.Mutex
	busy    int          // slots that are in use or granted
	granted map[key]bool // parents that are queued again with a slot
	parked  map[key]bool // those in waiting
	waiting turns
}

// enter reports whether a parent got a slot. If not, a later [gate.leave] returns the parent.
func (g *gate) enter(k key) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.granted[k] {
		delete(g.granted, k)
		return true
	}
	if g.busy < g.limit {
		g.busy++
		return true
	}
	if !g.parked[k] {
		if g.parked == nil {
			g.parked = map[key]bool{}
		}
		g.parked[k] = true
		g.waiting.Push(k)
	}
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

// leave gives a slot back. If parents wait, it grants the slot to one of them, which the caller
// must queue.
func (g *gate) leave() (next key, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting.Len() == 0 {
		g.busy--
		return key{}, false
	}
	next = g.waiting.Pop()
	delete(g.parked, next)
	if g.granted == nil {
		g.granted = map[key]bool{}
	}
	g.granted[next] = true
	return next, true
}
