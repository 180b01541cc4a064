package process

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
)

// Room gives memory to calls of handlers. With wait, it waits until there is enough.
// It returns a function that gives the memory back, and whether there was enough.
type Room func(ctx context.Context, namespace string, bytes, own int, wait bool) (leave func(), ok bool)

const (
	// freeRoom is the memory of a call that is not limited: many calls wait for more at the
	// same time.
	freeRoom = 64 << 10
	// firstRoom is the least memory that a call with more gets.
	firstRoom = 1 << 20
)

// callRoom is the memory for the declared children and the decoded live children of one call,
// or for the sub-handlers of one turn. Their number and size may come from the object: a tiny
// object can have thousands. It is safe for concurrent use.
//
// A call that cannot continue without memory waits only before it has some of it. Otherwise calls could
// wait for each other.
type callRoom struct {
	// take gets memory. A wait ends with one of the contexts or when ended is closed.
	take    func(ctx context.Context, ended <-chan struct{}, bytes, own int, wait bool) (leave func(), ok bool)
	hurried bool // it must not wait: it occupies an active slot

	mu    sync.Mutex
	over  bool          // the call has ended
	ended chan struct{} // closed then; nil means that nothing was used so far, as in most calls
	turn  chan struct{} // held by the caller that may use the fields below, even while it waits

	used     int
	reserved int
	held     held
	leaves   []func()
}

// held is the memory for objects that a call has read: it may keep all of them.
type held struct {
	each map[string]int // by their names
	all  int
	room int // the part of it that is reserved, or more
}

const (
	// freeReads is the memory of all objects that a call has read that is not limited.
	freeReads = 64 << 10
	// firstReads is the least memory that a call with more gets for them. It waits for no more, so
	// this should be enough for most calls.
	firstReads = 256 << 10
)

// reserve counts more memory. Less than zero gives memory back to the same call. An error
// means that there is not enough.
func (r *callRoom) reserve(bytes int) error {
	if ended, _ := r.enter(context.Background()); ended {
		return nil
	}
	defer r.yield()
	r.used += bytes
	if r.used <= max(freeRoom, r.reserved) {
		return nil
	}
	missing := r.used - r.reserved
	for _, more := range []int{max(missing, firstRoom, r.reserved), missing} { // rather much at once
		leave, ok := r.take(context.Background(), r.ended, more, r.reserved, r.reserved == 0 && !r.hurried)
		if ok {
			r.reserved += more
			r.leaves = append(r.leaves, leave)
			return nil
		}
	}
	r.used -= bytes
	return fmt.Errorf("there is no memory for %d KiB more: the children and sub-handlers of this object take %d KiB, and those of others count as well; "+
		"declare fewer or smaller ones, or increase the memory limit of the operator", bytes>>10, r.used>>10)
}

// hold is a [handler.Hold].
func (r *callRoom) hold(ctx context.Context, of string, bytes int, wait, always bool) (ok bool) {
	if ended, canceled := r.enter(ctx); ended || canceled {
		return ended
	}
	defer r.yield()
	more := bytes - r.held.each[of]
	if more <= 0 {
		return true
	}
	if missing := r.held.all + more - freeReads - r.held.room; missing > 0 && !r.holdRoom(ctx, missing, wait && (always || r.reserved == 0)) {
		return false
	}
	if r.held.each == nil {
		r.held.each = map[string]int{}
	}
	r.held.each[of] = bytes
	r.held.all += more
	return true
}

// holdRoom reserves at least so many bytes for objects that the call has read.
func (r *callRoom) holdRoom(ctx context.Context, bytes int, wait bool) bool {
	for _, room := range slices.Compact([]int{max(bytes, firstReads-r.held.room), bytes}) { // rather much at once
		leave, ok := r.take(ctx, r.ended, room, r.reserved, wait && !r.hurried)
		if ok {
			r.held.room += room
			r.used, r.reserved = r.used+room, r.reserved+room
			r.leaves = append(r.leaves, leave)
			return true
		}
	}
	return false
}

// holding is [handler.Request.Room].
func (p *Processor) holding(body *object.Body) func(context.Context) (handler.Hold, func()) {
	if p.Room == nil {
		return nil
	}
	return func(ctx context.Context) (handler.Hold, func()) {
		room := p.roomFor(ctx, body)
		return room.hold, room.leave
	}
}

// roomFor returns the memory for one call. nil means no limit.
func (p *Processor) roomFor(ctx context.Context, body *object.Body) *callRoom {
	if p.Room == nil {
		return nil
	}
	return &callRoom{take: func(asking context.Context, ended <-chan struct{}, bytes, own int, wait bool) (func(), bool) {
		if !wait {
			return p.Room(ctx, body.Namespace, bytes, own, false)
		}
		waiting, stop := context.WithCancel(asking)
		defer context.AfterFunc(ctx, stop)()
		var watch sync.WaitGroup
		defer watch.Wait()
		defer stop()
		watch.Go(func() {
			select {
			case <-ended:
				stop()
			case <-waiting.Done():
			}
		})
		leave, ok := p.Room(waiting, body.Namespace, bytes, own, true)
		if ok && asking.Err() != nil {
			leave()
			return nil, false
		}
		return leave, ok
	}}
}

// enter waits for the turn of a caller, which must yield afterwards. After the end of the call, or if
// ctx is done, the caller has no turn.
func (r *callRoom) enter(ctx context.Context) (ended, canceled bool) {
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return true, false
	}
	if r.turn == nil {
		r.turn, r.ended = make(chan struct{}, 1), make(chan struct{})
	}
	r.mu.Unlock()
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return false, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		r.yield()
	}
	return r.over, false
}

func (r *callRoom) yield() { <-r.turn }

// leave gives all memory back, at the end of the call. Goroutines that the handler has started may
// still use the room: their later reads are not counted.
func (r *callRoom) leave() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	if r.turn == nil {
		return
	}
	close(r.ended)
	r.turn <- struct{}{}
	defer r.yield()
	for _, leave := range r.leaves {
		leave()
	}
}
