package admission

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// smallBody is the size up to which a body uses the room for small ones. Most
	// reviews are smaller.
	smallBody = 64 << 10

	// middling is the size up to which a body may use the spare of the room for large ones.
	middling = 512 << 10

	// headSize is the size of the part that is read of a body that is too long.
	headSize = 4 << 10

	// beginningSize is the size of the part of each body that is read before it takes room.
	// It is limited by the number of letters only. API servers send the namespace in it.
	beginningSize = 2 << 10

	// firstChunk is the size of the first buffer of a large body.
	firstChunk = 8 << 10

	// A body that takes longer than slowAfter and arrives more slowly than slowRate is
	// dropped if others wait for room. An API server sends a body at once, but its
	// connection and its processor are shared. At this rate, small bodies occupy room
	// for hardly longer than slowAfter.
	slowAfter = 500 * time.Millisecond
	slowRate  = 256 << 10 // bytes per second
	slowCheck = 100 * time.Millisecond

	// maxBodies limits the bodies that are being received, after their beginning, or wait
	// for room. Each may fill a buffer of its connection in addition.
	maxBodies = 512

	// maxWaitingBodies limits the large bodies of a client that wait for room. If there are
	// more, one of the namespace with the most of them is refused.
	maxWaitingBodies = 64
)

// inbox limits the memory for the bodies of all reviews: those that are being received,
// that wait and that are being handled.
//
// There is separate room for small and for large bodies. A large body counts as small
// until its first chunk has arrived; then it takes room for its whole announced size. So
// two bodies cannot block each other by waiting for more room. A fifth of each room is
// kept for namespaces that have nothing. One client can have three
// quarters of the rest, and one namespace of a client three quarters of that. So the
// beginning of a body is read first, because it has the namespace. A body that is larger
// than the room of a namespace counts as that room.
//
// # Guarantees
//
// Slow senders do not block others: as soon as a body waits for room, slow ones are
// dropped; see [slowAfter]. The time for which a body waits for room does not count.
type inbox struct {
	most         int    // open requests; maxLetters, except in tests
	small, large budget // bytes
	places       budget // letters that are being received
	answers      budget // bytes of large responses that are being sent

	mu      sync.Mutex
	letters map[*letter]struct{}
	peers   map[string]int // the number of letters by peer, without dropped ones
	live    int            // the sum of peers
}

// letter is one request: first its body, at last its response.
type letter struct {
	peer      string                   // the host that sent it
	namespace string                   // see namespaceOf; empty before the beginning has arrived
	cancel    context.CancelFunc       // cancels the request
	control   *http.ResponseController // controls the connection
	timeout   time.Duration            // the limit for receiving the body

	small, large int64 // acquired bytes of either budget
	place        int64 // 1 while the body is being received

	arrived  atomic.Int64 // received bytes
	began    time.Time    // the start, moved forward by the time spent waiting for room
	blocked  bool         // waits for room
	received bool
	dropped  bool
	refused  bool // was dropped by open; never changes

	answer    int64        // acquired bytes of the budget for responses
	answering time.Time    // the start of sending the response
	sent      atomic.Int64 // sent bytes of the response
}

// sender returns who shares the room. It must not be called before the beginning has
// arrived.
func (l *letter) sender() sender { return sender{l.peer, l.namespace} }

func newInbox(bytes int64) *inbox {
	b := &inbox{most: maxLetters, small: splitBudget(bytes/3, smallBody), large: splitBudget(bytes-bytes/3, middling), answers: newBudget(bytes / 3), places: newBudget(maxBodies), letters: map[*letter]struct{}{}, peers: map[string]int{}}
	b.small.pressed = func() time.Duration { return b.dropSlow(func(l *letter) bool { return l.small > 0 }) }
	b.large.pressed = func() time.Duration { return b.dropSlow(func(l *letter) bool { return l.large > 0 }) }
	b.large.queue, b.answers.queue, b.answers.pressed = maxWaitingBodies, maxWaitingBodies, b.dropUnread
	b.places.pressed = func() time.Duration { return b.dropSlow(func(l *letter) bool { return l.place > 0 }) }
	return b
}

// release releases the room of the body.
func (b *inbox) release(l *letter) {
	b.small.release(l.sender(), l.small)
	b.large.release(l.sender(), l.large)
	b.places.release(l.sender(), l.place)
	b.mu.Lock()
	l.small, l.large, l.place = 0, 0, 0
	b.mu.Unlock()
}

var (
	// errNoRoom means that the capacity for reviews is exhausted.
	errNoRoom = errors.New("too many concurrent reviews")
	// errSlow means that a body was not received in time.
	errSlow = errors.New("timeout while receiving the body")
)

// dropSlow drops slow letters that has selects. It returns the time until it must be
// called again.
func (b *inbox) dropSlow(has func(*letter) bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := slowAfter
	for l := range b.letters {
		if l.received || l.dropped || l.blocked || !has(l) {
			continue
		}
		age := time.Since(l.began)
		if left := slowAfter - age; left > 0 {
			next = min(next, left)
			continue
		}
		if float64(l.arrived.Load()) >= age.Seconds()*slowRate {
			next = slowCheck
			continue
		}
		b.drop(l)
	}
	return next
}

// take acquires room for a letter. It waits until there is room or ctx is done.
func (b *inbox) take(ctx context.Context, l *letter, from *budget, of *int64, n int64) error {
	since := time.Now()
	b.mu.Lock()
	if l.dropped {
		b.mu.Unlock()
		return errNoRoom
	}
	l.blocked = true
	_ = l.control.SetReadDeadline(time.Time{}) // must not expire while nothing is read
	b.mu.Unlock()
	got, err := from.acquire(ctx, l.sender(), n)
	b.mu.Lock()
	defer b.mu.Unlock()
	l.blocked = false
	l.began = l.began.Add(time.Since(since))
	*of += got
	if l.dropped {
		return errNoRoom
	}
	return err
}

// expect sets the deadline for receiving the rest of a letter.
func (b *inbox) expect(l *letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !l.dropped {
		_ = l.control.SetReadDeadline(l.began.Add(l.timeout)) // custom servers may not support deadlines
	}
}

// room returns the body in a larger buffer. A body acquires small room only once: bodies
// that wait for more of it could block each other.
func (b *inbox) room(ctx context.Context, l *letter, body []byte, announced, limit int64) ([]byte, error) {
	size := int64(firstChunk)
	switch {
	case announced < 0:
		announced, size = limit, smallBody
	case announced < smallBody:
		size = announced + 1
	}
	full := announced + 1 // one more byte to detect the end without another buffer
	switch {
	case int64(cap(body)) >= full:
		return nil, &http.MaxBytesError{Limit: limit}
	case l.small == 0:
		size = min(size, full)
		if err := b.take(ctx, l, &b.small, &l.small, size); err != nil {
			return nil, err
		}
	default:
		size = full
		if err := b.take(ctx, l, &b.large, &l.large, size); err != nil {
			return nil, err
		}
		b.small.release(l.sender(), l.small)
		b.mu.Lock()
		l.small = 0
		b.mu.Unlock()
	}
	b.expect(l)
	return append(make([]byte, 0, size), body...), nil
}

// receive reads the body of a request. Its room stays acquired until the letter is
// closed. If the body is longer than the limit, receive returns its beginning with the
// error, at least [headSize] bytes if they arrive in time.
func (b *inbox) receive(ctx context.Context, l *letter, r *http.Request, limit int64) (body []byte, err error) {
	if body, err = b.beginning(l, r, limit); err != nil {
		return b.end(l, body, err)
	}
	b.mu.Lock()
	l.namespace = namespaceOf(body)
	b.mu.Unlock()
	if b.crowded(l.peer) {
		if err := b.take(ctx, l, &b.places, &l.place, 1); err != nil {
			return nil, err
		}
	}
	if r.ContentLength > limit {
		return b.head(ctx, l, r, body), &http.MaxBytesError{Limit: limit}
	}
	for {
		if len(body) == cap(body) {
			larger, err := b.room(ctx, l, body, r.ContentLength, limit)
			if err != nil {
				return body, err
			}
			body = larger
		}
		var n int
		n, err = r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		l.arrived.Add(int64(n))
		switch {
		case int64(len(body)) > limit:
			return body, &http.MaxBytesError{Limit: limit}
		case err != nil:
			if body, err = b.end(l, body, err); err == nil && l.namespace == unknownNamespace && !b.rename(l, namespaceOf(body)) {
				return nil, errNoRoom
			}
			return body, err
		}
	}
}

// rename sets the namespace of a received letter whose beginning had none, because the object
// has a very long name. Its room counts for the namespace from then on: otherwise a tenant could
// have the part of a second one. ok is false if the namespace has no room for it.
func (b *inbox) rename(l *letter, namespace string) (ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, is := l.sender(), sender{l.peer, namespace}
	if !b.small.move(was, is, l.small) || !b.large.move(was, is, l.large) { // it has only one of both
		return false
	}
	l.namespace = namespace
	return true
}

// beginning reads the first bytes of a body: one more than the limit at most. An error
// means that the body cannot be received.
func (b *inbox) beginning(l *letter, r *http.Request, limit int64) ([]byte, error) {
	b.expect(l)
	body := make([]byte, min(beginningSize, limit+1))
	n, err := io.ReadFull(r.Body, body)
	l.arrived.Add(int64(n))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the next read returns it again
	}
	return slices.Clip(body[:n]), err
}

// head returns the first bytes of a body that is too long. It has their beginning.
func (b *inbox) head(ctx context.Context, l *letter, r *http.Request, beginning []byte) []byte {
	if err := b.take(ctx, l, &b.small, &l.small, headSize); err != nil {
		return nil
	}
	b.expect(l)
	head := make([]byte, headSize)
	had := copy(head, beginning)
	n, _ := io.ReadFull(r.Body, head[had:]) // what arrived may be enough
	l.arrived.Add(int64(n))
	return head[:had+n]
}

// end finishes a letter after the read error err and returns the body or the final
// error.
func (b *inbox) end(l *letter, body []byte, err error) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case errors.Is(err, io.EOF) && !l.dropped:
		l.received = true
		b.places.release(l.sender(), l.place)
		l.place = 0
		_ = l.control.SetReadDeadline(time.Time{}) // an expired deadline would cancel the request while the handler runs
		return body, nil
	case l.dropped:
		return nil, errNoRoom
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errSlow
	}
	return nil, err
}

// load adds the letters to the load.
func (b *inbox) load(of *Load) {
	b.places.load(of)
	b.small.load(of)
	b.large.load(of)
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.letters {
		of.Bytes += l.small + l.large
		if !l.received && !l.blocked && !l.dropped {
			of.Receiving++
		}
	}
}
