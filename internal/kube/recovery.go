package kube

import (
	"context"
	"sync"
	"time"
)

// recovery shortens the pauses of requests that have failed, so that an outage
// is over for them soon after it is, however long it was and however long their
// pauses have become.
//
// No pause lasts for much longer than patience once the server answers any request.
// As long as it does not, one request at a time goes ahead of its pause to find
// out: the number of those that wait makes no difference to the server. The patience
// is short with a server that cannot be reached, because trying costs it nothing.
type recovery struct {
	mu       sync.Mutex
	waiting  int
	answered chan struct{} // closed at the next answer; nil if nobody waits
	ahead    time.Time     // when a request last went ahead
}

// patience is how long a pause lasts that may be cut short, and the time between
// requests that go ahead: after errors that the server has returned, and after
// attempts that got no response.
const (
	patience            = 5 * time.Second
	unreachablePatience = time.Second
)

// pause waits, and returns what is left of the pause if it was cut short. Its
// only error is that of ctx.
func (r *recovery) pause(ctx context.Context, d, patience time.Duration) (left time.Duration, err error) {
	if d <= patience {
		return 0, sleep(ctx, d, nil)
	}
	answered := r.enter()
	defer r.leave()
	until := time.Now().Add(d)
	if err := sleep(ctx, patience, nil); err != nil {
		return 0, err
	}
	for {
		left := time.Until(until)
		if left <= 0 || closed(answered) || r.goAhead(patience) {
			return max(left, 0), nil
		}
		if err := sleep(ctx, min(left, patience), answered); err != nil {
			return 0, err
		}
	}
}

// hasAnswered notes that the server does its work.
func (r *recovery) hasAnswered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting > 0 {
		close(r.answered)
		r.answered = make(chan struct{})
	}
}

func (r *recovery) enter() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == 0 {
		r.answered = make(chan struct{})
	}
	r.waiting++
	return r.answered
}

func (r *recovery) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting--
}

// goAhead tells a request that it is the one to find out.
func (r *recovery) goAhead(patience time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.ahead) < patience {
		return false
	}
	r.ahead = time.Now()
	return true
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
