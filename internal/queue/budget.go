package queue

import (
	"sync"
	"time"
)

// Budget limits the sum of the costs of turns that run at the same time. Several
// queues may share it. A nil Budget has no limit.
//
// A turn that costs more than the whole budget runs while no other costly turn does.
// If no costly turn ends for the time of Patience, one more may start: turns that take
// very long must not block the others forever.
type Budget struct {
	Size     int
	Patience time.Duration

	mu      sync.Mutex
	used    int
	extra   bool      // one more turn may start
	ended   time.Time // when a turn last ended or started as an extra one
	watch   *time.Timer
	waiting map[any]func() // by queue or caller
}

// take gets room for a turn. If there is none, notify is called once when there may
// be, without any lock held. Another call with the same owner replaces it.
func (b *Budget) take(cost int, owner any, notify func()) bool {
	if b == nil || cost <= 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.used == 0 || b.used+cost <= b.Size:
	case b.extra:
		b.extra, b.ended = false, time.Now()
	default:
		b.wait(owner, notify)
		return false
	}
	b.used += cost
	delete(b.waiting, owner)
	return true
}

// wait records a waiting owner. The lock must be held.
func (b *Budget) wait(owner any, notify func()) {
	if b.waiting == nil {
		b.waiting = map[any]func(){}
	}
	if len(b.waiting) == 0 {
		if b.ended.IsZero() {
			b.ended = time.Now()
		}
		b.arm()
	}
	b.waiting[owner] = notify
}

// arm sets the timer for an extra turn. The lock must be held.
func (b *Budget) arm() {
	if b.watch != nil {
		b.watch.Stop()
	}
	b.watch = time.AfterFunc(max(0, time.Until(b.ended.Add(b.Patience))), b.overtime)
}

// overtime admits one more turn if none has ended for the time of Patience.
func (b *Budget) overtime() {
	b.mu.Lock()
	if len(b.waiting) == 0 {
		b.mu.Unlock()
		return
	}
	if time.Since(b.ended) < b.Patience {
		b.arm()
		b.mu.Unlock()
		return
	}
	b.extra = true
	b.tell()
}

// tell notifies all waiting owners, and unlocks.
func (b *Budget) tell() {
	waiting := b.waiting
	b.waiting = nil
	b.mu.Unlock()
	for _, notify := range waiting {
		notify()
	}
}

// release gives room back. It must be called without locks that notify needs.
func (b *Budget) release(cost int) {
	if b == nil || cost <= 0 {
		return
	}
	b.mu.Lock()
	b.used -= cost
	b.ended = time.Now()
	b.extra = false
	b.tell()
}

// Acquire waits for room outside of queues. If one of the channels is closed first, it
// returns without room. It returns the function that gives the room back.
func (b *Budget) Acquire(cost int, done, stopping <-chan struct{}) (release func()) {
	owner := new(int)
	for {
		again := make(chan struct{})
		if b.take(cost, owner, func() { close(again) }) {
			return func() { b.release(cost) }
		}
		select {
		case <-again:
			continue
		case <-done:
		case <-stopping:
		}
		b.mu.Lock()
		delete(b.waiting, owner)
		b.mu.Unlock()
		return func() {}
	}
}
