package queue

import (
	"sync"
	"time"
)

// Budget limits the sum of the costs of turns that run at the same time. Several
// queues may share it. A nil Budget has no limit.
//
// If no costly turn ends for the time of Grace, groups that have none get room nevertheless, one
// turn at a time: slow turns of one group must not delay the first turns of all others.
//
// A turn that costs more than the whole budget runs while no other costly turn does.
// If no costly turn ends for the time of Patience, one more may start: turns that take
// very long must not block the others forever. They take at most twice the size, but a
// turn of a group that has none may start nevertheless.
//
// A budget can be a part of another one, the whole, which limits the sum of its parts. A
// turn then needs room in both. Only a group that already has room of the part waits for
// the whole: so each group has at least one turn of each part, whatever the others have, up to
// Hard. After the time of Patience, one more may start if only counted parts take its room: they
// may take it for as long as the process runs.
type Budget struct {
	Size     int
	Most     int // of one group, whatever the others have; a group that has nothing never waits; 0 means no limit
	Patience time.Duration
	Grace    time.Duration // 0 means none

	Whole   *Budget // with Size and Most; nil means that this is no part
	Rest    int     // the room of the whole, and of a group in it, that is left to other parts
	Counted bool    // it counts in the whole, but never waits for it, as for room inside of turns that have some
	Hard    int     // of the whole, from which on a group without a turn waits as well, unless the whole is empty; 0 means never

	mu      sync.Mutex
	used    int
	shares  shares    // the used part of each group that has something
	counted shares    // of a whole: the used part of its counted parts
	extra   bool      // one more turn may start
	grace   bool      // a group got room after the time of Grace, and has some
	graced  string    // that group
	ended   time.Time // when a turn last ended or started as an extra one, except for those of the graced group
	watch   *time.Timer
	waiting map[any]func() // by queue, or by the budget itself for all callers; of a whole, by part and those
	callers lines[*caller] // of Acquire
}

// shares are the parts of groups.
type shares map[string]int

// add adds to the part of a group.
func (s *shares) add(cost int, group string) {
	if *s == nil {
		*s = shares{}
	}
	if (*s)[group] += cost; (*s)[group] == 0 {
		delete(*s, group)
	}
}

func (s shares) sum() (all int) {
	for _, share := range s {
		all += share
	}
	return all
}

// claim is an owner that waits for the whole.
type claim struct {
	part  *Budget
	owner any
}

// take gets room for a turn. If there is none, notify is called once when there may
// be, without any lock held. Another call with the same owner replaces it.
func (b *Budget) take(cost int, group string, owner any, notify func()) bool {
	if b == nil || cost <= 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeLocked(cost, group, owner, notify)
}

// takeLocked is take. The lock must be held.
func (b *Budget) takeLocked(cost int, group string, owner any, notify func()) bool {
	fits := b.used == 0 || b.fits(cost, group)
	if !fits && b.graces(group) && b.takeWhole(cost, group, owner, notify) {
		b.grace, b.graced = true, group
		b.add(cost, group)
		delete(b.waiting, owner)
		return true
	}
	if !fits && !(b.extra && (b.shares[group] == 0 || b.used+cost <= 2*b.Size)) || !b.takeWhole(cost, group, owner, notify) {
		b.wait(owner, notify)
		return false
	}
	if !fits {
		b.extra, b.ended = false, time.Now()
	}
	b.add(cost, group)
	delete(b.waiting, owner)
	return true
}

// takeWhole gets room of the whole. If there is none, notify is called as by take. It may be
// nil. The lock of the part must be held.
func (b *Budget) takeWhole(cost int, group string, owner any, notify func()) bool {
	w := b.Whole
	if w == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	first := b.shares[group] == 0 && (b.Hard == 0 || w.used == 0 || w.used+cost <= b.Hard)
	fits := first || b.Counted || w.used+cost <= w.Size-b.Rest && w.shares[group]+cost <= w.Most-b.Rest
	if !fits && b.extra && w.used-w.counted.sum()+cost <= w.Size-b.Rest && w.shares[group]-w.counted[group]+cost <= w.Most-b.Rest {
		fits, b.extra, b.ended = true, false, time.Now()
	}
	if !fits {
		if w.waiting == nil {
			w.waiting = map[any]func(){}
		}
		if notify != nil {
			w.waiting[claim{b, owner}] = notify
		}
		return false
	}
	w.add(cost, group)
	if b.Counted {
		w.counted.add(cost, group)
	}
	delete(w.waiting, claim{b, owner})
	return true
}

// add notes that a group has more. The lock must be held.
func (b *Budget) add(cost int, group string) {
	b.used += cost
	b.shares.add(cost, group)
}

// fits reports whether there is room for a turn of the group. The lock must be held.
func (b *Budget) fits(cost int, group string) bool {
	if b.Most == 0 {
		return b.used+cost <= b.Size
	}
	has := b.shares[group]
	return has == 0 || has+cost <= b.Most && b.used+cost <= b.Size
}

// graces reports whether a turn of the group starts because of Grace. The lock must be held.
func (b *Budget) graces(group string) bool {
	return b.Grace > 0 && b.shares[group] == 0 && !b.grace && time.Since(b.ended) >= b.Grace
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

// arm sets the timer for the end of the grace, or for an extra turn. The lock must be held.
func (b *Budget) arm() {
	if b.watch != nil {
		b.watch.Stop()
	}
	wait := b.Patience
	if b.Grace > 0 && time.Since(b.ended) < b.Grace {
		wait = b.Grace
	}
	b.watch = time.AfterFunc(max(0, time.Until(b.ended.Add(wait))), b.overtime)
}

// overtime admits one more turn if none has ended for the time of Patience, or those that are
// due after the time of Grace.
func (b *Budget) overtime() {
	b.mu.Lock()
	if len(b.waiting) == 0 {
		b.mu.Unlock()
		return
	}
	if since := time.Since(b.ended); since < b.Patience {
		b.arm()
		if b.Grace == 0 || since < b.Grace {
			b.mu.Unlock()
			return
		}
		b.tell()
		return
	}
	b.extra, b.ended = true, time.Now() // if no waiting turn may start, the next try is later
	b.tell()
}

// idle reports whether the group has nothing.
func (b *Budget) idle(group string) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shares[group] == 0
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
func (b *Budget) release(cost int, group string) {
	if b == nil || cost <= 0 {
		return
	}
	b.mu.Lock()
	b.add(-cost, group)
	if b.grace && group == b.graced {
		b.grace = b.shares[group] > 0
	} else {
		b.ended = time.Now()
		b.extra = false
	}
	b.tell()
	if w := b.Whole; w != nil && b.Counted {
		w.mu.Lock()
		w.counted.add(-cost, group)
		w.mu.Unlock()
	}
	b.Whole.release(cost, group)
}

// Try returns room outside of queues, if there is enough at once, with the function that
// gives it back. own is the room that the caller has already. As long as nothing else has any,
// it gets up to twice the size.
func (b *Budget) Try(cost, own int, group string) (release func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	alone := b.used == own && (own == 0 || own+cost <= 2*b.Size)
	if !alone && !b.fits(cost, group) || !b.takeWhole(cost, group, nil, nil) {
		return nil, false
	}
	b.add(cost, group)
	return func() { b.release(cost, group) }, true
}

// Acquire waits for room outside of queues. If one of the channels is closed first, it
// returns without room. It returns the function that gives the room back. The callers of a
// group get room in the order of their calls, and the groups take turns.
func (b *Budget) Acquire(cost int, group string, done, stopping <-chan struct{}) (release func()) {
	if b == nil || cost <= 0 {
		return func() {}
	}
	c := &caller{cost, group, make(chan struct{})}
	b.mu.Lock()
	b.callers.push(group, c)
	b.admit()
	b.mu.Unlock()
	select {
	case <-c.ready:
		return func() { b.release(cost, group) }
	case <-done:
	case <-stopping:
	}
	if b.forget(c) {
		return func() {}
	}
	return func() { b.release(cost, group) } // it got room meanwhile
}

// caller is a call of [Budget.Acquire] that waits.
type caller struct {
	cost  int
	group string
	ready chan struct{} // closed when the caller has room
}

// serve gives room to callers of [Budget.Acquire].
func (b *Budget) serve() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.admit()
}

// admit gives room to callers of [Budget.Acquire] for as long as there is some. It looks only at
// the first caller of each group: thousands may wait, and room is given back as often. All
// callers together are one waiting owner, so they compete with the queues. The lock must be held.
func (b *Budget) admit() {
	for {
		c, ok := b.callers.pop(func(c *caller) bool { return b.takeLocked(c.cost, c.group, b, b.serve) })
		if !ok {
			return
		}
		close(c.ready)
	}
}

// forget removes a caller that no longer waits. It reports whether the caller waited. There may
// be room for the callers behind it, which may need less.
func (b *Budget) forget(c *caller) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	waited := b.callers.remove(c.group, func(other *caller) bool { return other == c })
	b.leave(b)
	b.admit()
	return waited
}

// leave notes that an owner does not wait. The lock must be held.
func (b *Budget) leave(owner any) {
	delete(b.waiting, owner)
	if w := b.Whole; w != nil {
		w.mu.Lock()
		delete(w.waiting, claim{b, owner})
		w.mu.Unlock()
	}
}
