package call

import (
	"sync"
	"time"
)

// noticeInterval is the least time between two warnings about the same condition.
const noticeInterval = time.Minute

// notice limits the warnings about a condition that tenants can cause as often as they like.
type notice struct {
	mu   sync.Mutex
	last time.Time
}

// due reports whether the caller should log the warning now.
func (n *notice) due() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if !n.last.IsZero() && now.Sub(n.last) < noticeInterval {
		return false
	}
	n.last = now
	return true
}
