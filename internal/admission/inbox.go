package admission

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// smallBody is the size up to which a body is received in the room for small
	// ones. Most reviews are smaller.
	smallBody = 64 << 10

	// firstChunk is how much memory a body of unknown size takes at first.
	firstChunk = 8 << 10

	// A body that arrives for longer than slowAfter, at a lower rate than slowRate, is
	// dropped for others that wait for room. An API server sends it at once, but shares
	// a connection, and a processor, with others. At this rate, small bodies are never
	// in the way for much longer than slowAfter.
	slowAfter = 500 * time.Millisecond
	slowRate  = 256 << 10 // bytes in a second
	slowCheck = 100 * time.Millisecond

	// maxBodies is how many bodies arrive, or wait for room, at the same time. Each
	// may fill a buffer of its connection besides.
	maxBodies = 512

	// maxWaitingBodies is how many large bodies wait for room; more are refused.
	maxWaitingBodies = 64
)

// inbox bounds the bytes of all reviews that are received, wait or are handled.
//
// There is room for small bodies and room for large ones. A body is small until more
// of it arrives; then it takes room for all that it announced. So no two bodies wait
// for the rest of each other's room.
//
// # Guarantees
//
// Slow senders do not keep others waiting: as soon as a body waits for room, those are
// dropped that are slow: see [slowAfter]. Time that a body waits for room does not
// count.
type inbox struct {
	small, large budget // of bytes
	places       budget // of letters that are not received yet

	mu      sync.Mutex
	letters map[*letter]struct{}
}

// letter is the body of one review.
type letter struct {
	control *http.ResponseController // of the connection that it arrives on
	timeout time.Duration            // for its arrival

	small, large int64 // bytes of room that it has
	place        int64 // 1 while it arrives

	arrived  atomic.Int64 // bytes
	began    time.Time    // or later, by the time that it waited for room
	blocked  bool         // it waits for room
	received bool
	dropped  bool
}

func newInbox(bytes int64) *inbox {
	b := &inbox{small: budget{size: bytes / 3}, large: budget{size: bytes - bytes/3, queue: maxWaitingBodies}, letters: map[*letter]struct{}{}}
	b.small.pressed = func() time.Duration { return b.dropSlow(func(l *letter) bool { return l.small > 0 }) }
	b.large.pressed = func() time.Duration { return b.dropSlow(func(l *letter) bool { return l.large > 0 }) }
	b.places.size = maxBodies
	b.places.pressed = func() time.Duration { return b.dropSlow(func(l *letter) bool { return l.place > 0 }) }
	return b
}

// open begins a letter; close must follow.
func (b *inbox) open(control *http.ResponseController, timeout time.Duration) *letter {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &letter{control: control, timeout: timeout, began: time.Now()}
	b.letters[l] = struct{}{}
	return l
}

// close gives the letter's room to others.
func (b *inbox) close(l *letter) {
	b.mu.Lock()
	delete(b.letters, l)
	b.mu.Unlock()
	b.small.release(l.small)
	b.large.release(l.large)
	b.places.release(l.place)
}

var (
	// errNoRoom says that reviews take all of the capacity.
	errNoRoom = errors.New("too many reviews at the same time")
	// errSlow says that a body was not received in time.
	errSlow = errors.New("it was not sent in time")
)

// dropSlow interrupts the letters with the given room that arrive slowly, and returns
// when to look again.
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
		l.dropped = true
		_ = l.control.SetReadDeadline(time.Now()) // where that is not supported, the body arrives or not
	}
	return next
}

// take gets room for a letter, and waits for it until ctx is done.
func (b *inbox) take(ctx context.Context, l *letter, from *budget, of *int64, n int64) error {
	since := time.Now()
	b.mu.Lock()
	l.blocked = true
	_ = l.control.SetReadDeadline(time.Time{}) // it must not pass while nothing is read
	b.mu.Unlock()
	got, err := from.acquire(ctx, n)
	b.mu.Lock()
	defer b.mu.Unlock()
	l.blocked = false
	l.began = l.began.Add(time.Since(since))
	*of += got
	return err
}

// expect sets the deadline for the rest of a letter.
func (b *inbox) expect(l *letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = l.control.SetReadDeadline(l.began.Add(l.timeout)) // servers of users may know no deadlines
}

// room makes the buffer larger.
func (b *inbox) room(ctx context.Context, l *letter, body []byte, announced, limit int64) ([]byte, error) {
	if announced < 0 {
		announced = limit
	}
	full := announced + 1 // one more, so that the end is seen without another buffer
	size := min(full, max(2*int64(cap(body)), firstChunk))
	switch {
	case int64(cap(body)) >= full:
		return nil, &http.MaxBytesError{Limit: limit}
	case size <= smallBody:
		if err := b.take(ctx, l, &b.small, &l.small, size-int64(cap(body))); err != nil {
			return nil, err
		}
	default:
		size = full
		if err := b.take(ctx, l, &b.large, &l.large, size); err != nil {
			return nil, err
		}
		b.small.release(l.small)
		b.mu.Lock()
		l.small = 0
		b.mu.Unlock()
	}
	b.expect(l)
	return append(make([]byte, 0, size), body...), nil
}

// receive reads the body of a request. Its room is taken until the letter is closed.
func (b *inbox) receive(ctx context.Context, l *letter, r *http.Request, limit int64) (body []byte, err error) {
	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	if err := b.take(ctx, l, &b.places, &l.place, 1); err != nil {
		return nil, err
	}
	for {
		if len(body) == cap(body) {
			if body, err = b.room(ctx, l, body, r.ContentLength, limit); err != nil {
				return nil, err
			}
		}
		var n int
		n, err = r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		l.arrived.Add(int64(n))
		switch {
		case int64(len(body)) > limit:
			return nil, &http.MaxBytesError{Limit: limit}
		case err != nil:
			return b.end(l, body, err)
		}
	}
}

// end says what the end of reading means.
func (b *inbox) end(l *letter, body []byte, err error) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == io.EOF:
		l.received = true
		b.places.release(l.place)
		l.place = 0
		_ = l.control.SetReadDeadline(time.Time{}) // or else the connection counts as broken while the handler runs
		return body, nil
	case l.dropped:
		return nil, errNoRoom
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errSlow
	}
	return nil, err
}

// load adds what the inbox knows.
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
