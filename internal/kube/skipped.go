package kube

import (
	"sync"

	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// maxSkipped limits the number of unreadable objects that are named in the log.
const maxSkipped = 4096

// skipped remembers which unreadable objects were logged. Without it, every list would
// log them again.
type skipped struct {
	mu    sync.Mutex
	named loglimit.Shares[skippedKey, struct{}]
	full  bool // the limit was reached before
}

type skippedKey struct {
	resource string
	key      string
}

// first reports whether the object must be logged. last means that there is no room for
// others, except of namespaces with fewer of them.
func (s *skipped) first(namespace string, k skippedKey) (first, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.named.Get(namespace, k); known {
		return false, false
	}
	s.named.Limit = maxSkipped
	if !s.named.Put(namespace, k, struct{}{}, nil) {
		return false, false
	}
	last = !s.full && s.named.Len() == maxSkipped
	s.full = s.full || last
	return true, last
}

// skipper returns a callback for objects that cannot be read. It logs each of them
// once, and then calls then, which may be nil.
func (c *Client) skipper(info kind.Info, then func(object.Identity)) func(*object.UnreadableError) {
	return func(e *object.UnreadableError) {
		if first, last := c.shared.skipped.first(e.Namespace, skippedKey{info.String(), e.Key()}); first {
			log := c.shared.opts.Log.With("resource", info.String())
			log.Error("Skipping an object that cannot be read; other objects of this kind are served.",
				"namespace", e.Namespace, "name", e.Name, "uid", e.UID, "error", e.Err)
			if last {
				log.Error("Too many objects cannot be read; skipping further ones without logging them, except in namespaces with few of them.")
			}
		}
		if then != nil {
			then(e.Identity)
		}
	}
}
