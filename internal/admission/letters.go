package admission

import (
	"context"
	"net"
	"net/http"
	"time"
)

const (
	// maxLetters limits the requests that are open at the same time. Each takes a
	// goroutine, its headers, and buffers of its connection.
	maxLetters = 1024

	// maxLeaving limits the requests in addition that are refused or dropped and may still
	// send their response. Clients that do not read responses could collect any number of
	// them.
	maxLeaving = 64

	// fewLetters is the number of letters of a peer that are received without waiting for
	// those of other peers.
	fewLetters = 16

	// answerTimeout limits the total time of a request. It is longer than that of a review.
	answerTimeout = time.Minute

	// lastWrite is the time for the response to a request that is dropped or refused.
	lastWrite = time.Second
)

// open registers the letter of a request. The caller must call close afterwards.
//
// If there are too many letters, one of the peer with the most of them is dropped,
// because a flood must not block the reviews of API servers. If that is the peer of this
// request, the newest letter of the namespace with the most of its letters is dropped: users of an
// API server must not block each other. If no namespace has many, this letter is marked as refused.
// nil means that the request must be aborted
// without a response; close is not needed then.
func (b *inbox) open(r *http.Request, cancel context.CancelFunc, control *http.ResponseController, timeout time.Duration) *letter {
	peer := peerOf(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &letter{peer: peer, cancel: cancel, control: control, timeout: timeout, began: time.Now()}
	if b.live >= b.most && !b.displace(peer) {
		if b.leaving() >= maxLeaving {
			return nil
		}
		l.refused, l.dropped = true, true
		b.letters[l] = struct{}{}
		_ = control.SetWriteDeadline(time.Now().Add(lastWrite)) // without support for deadlines, the timeout of the server applies
		return l
	}
	// A connection may still have the deadline of its last response.
	_ = control.SetWriteDeadline(time.Now().Add(answerTimeout))
	b.letters[l] = struct{}{}
	b.peers[peer]++
	b.live++
	return l
}

// peerOf returns the host that sent a request.
func peerOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// refuse limits the time for the response to a request that is refused.
func (b *inbox) refuse(l *letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !l.dropped {
		_ = l.control.SetWriteDeadline(time.Now().Add(lastWrite)) // see drop
	}
}

// leaving returns the number of letters that are dropped and not closed yet. The lock
// must be held.
func (b *inbox) leaving() int { return len(b.letters) - b.live }

// crowded reports whether the peer has so many letters that they must wait for others.
func (b *inbox) crowded(peer string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peers[peer] > fewLetters
}

// close forgets a letter and releases all of its room.
func (b *inbox) close(l *letter) {
	b.release(l)
	b.answers.release(l.sender(), l.answer)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.letters, l)
	b.discount(l)
}

// abandon forgets a letter whose client has canceled the request. The caller must release its room
// later. The request has ended, so its connection must no longer be controlled.
func (b *inbox) abandon(l *letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.letters, l)
	b.discount(l)
	l.dropped = true
}

// displace drops a letter of the peer with the most letters. It returns false if the
// given peer has as many. The lock must be held.
func (b *inbox) displace(by string) bool {
	busiest := by
	for peer, n := range b.peers {
		if n > b.peers[busiest] {
			busiest = peer
		}
	}
	if busiest == by {
		return b.displaceTenant(by)
	}
	var victim *letter
	for l := range b.letters {
		switch {
		case l.dropped || l.peer != busiest:
		case victim == nil, victim.received && !l.received, victim.received == l.received && victim.began.Before(l.began):
			victim = l
		}
	}
	b.drop(victim)
	return true
}

// displaceTenant drops the newest letter of the namespace with the most letters of a peer. It
// returns false if no namespace has an eighth of all. The lock must be held.
func (b *inbox) displaceTenant(peer string) bool {
	counts := map[string]int{}
	for l := range b.letters {
		if !l.dropped && l.peer == peer && l.namespace != "" {
			counts[l.namespace]++
		}
	}
	busiest := ""
	for namespace, n := range counts {
		if n > counts[busiest] {
			busiest = namespace
		}
	}
	if counts[busiest] <= b.most/8 {
		return false
	}
	var victim *letter
	for l := range b.letters {
		if !l.dropped && l.peer == peer && l.namespace == busiest && (victim == nil || l.began.After(victim.began)) {
			victim = l
		}
	}
	b.drop(victim)
	return true
}

// drop cancels the request of a letter. The lock must be held.
func (b *inbox) drop(l *letter) {
	b.discount(l)
	l.dropped = true
	l.cancel()
	// Without support for deadlines, the letter is not interrupted.
	_ = l.control.SetReadDeadline(time.Now())
	last := lastWrite
	if !l.answering.IsZero() || b.leaving() > maxLeaving {
		last = 0
	}
	_ = l.control.SetWriteDeadline(time.Now().Add(last))
}

// discount removes a letter from the counts, once. The lock must be held.
func (b *inbox) discount(l *letter) {
	if l.dropped {
		return
	}
	b.live--
	if b.peers[l.peer]--; b.peers[l.peer] == 0 {
		delete(b.peers, l.peer)
	}
}

// reply waits for room for the response. Small responses need none.
func (b *inbox) reply(ctx context.Context, l *letter, size int64) (err error) {
	var got int64
	if size > smallBody {
		if got, err = b.answers.acquire(ctx, l.sender(), size); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l.answer = got
	if l.dropped {
		return errNoRoom
	}
	l.answering = time.Now()
	// API servers read responses at once.
	_ = l.control.SetWriteDeadline(l.answering.Add(l.timeout + time.Duration(size)*time.Second/slowRate))
	return nil
}

// send writes the response. Errors mean that the client is gone or does not read.
func (l *letter) send(w http.ResponseWriter, raw []byte) {
	for len(raw) > 0 {
		n, err := w.Write(raw[:min(len(raw), smallBody)])
		if err != nil {
			return
		}
		l.sent.Add(int64(n))
		raw = raw[n:]
	}
}

// dropUnread drops letters whose large responses are read slowly. It returns the time
// until it must be called again.
func (b *inbox) dropUnread() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.letters {
		age := time.Since(l.answering)
		if l.answer > 0 && !l.dropped && age >= slowAfter && float64(l.sent.Load()) < age.Seconds()*slowRate {
			b.drop(l)
		}
	}
	return slowCheck
}
