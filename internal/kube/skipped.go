package kube

import (
	"sync"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// maxSkipped limits the number of unreadable objects that are named in the log, and
// maxSkippedWithin the number of those in one namespace: its clients can create any number,
// and those of other namespaces must be named nevertheless.
const (
	maxSkipped       = 4096
	maxSkippedWithin = 512
)

// skipped remembers which unreadable objects were logged. Without it, every list would
// log them again.
type skipped struct {
	mu     sync.Mutex
	named  map[skippedKey]bool
	within map[string]int // the number of those by namespace
}

type skippedKey struct {
	resource string
	key      string
}

// first reports whether the object must be logged, and whether it is the last one of its
// namespace that is.
func (s *skipped) first(k skippedKey, namespace string) (first, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.named[k] || len(s.named) >= maxSkipped || s.within[namespace] >= maxSkippedWithin {
		return false, false
	}
	if s.named == nil {
		s.named, s.within = map[skippedKey]bool{}, map[string]int{}
	}
	s.named[k] = true
	s.within[namespace]++
	return true, len(s.named) == maxSkipped || s.within[namespace] == maxSkippedWithin
}

// skipper returns a callback for objects that cannot be read. It logs each of them
// once, and then calls then, which may be nil.
func (c *Client) skipper(info kind.Info, then func(object.Identity)) func(*object.UnreadableError) {
	return func(e *object.UnreadableError) {
		if first, last := c.shared.skipped.first(skippedKey{info.String(), e.Key()}, e.Namespace); first {
			log := c.shared.opts.Log.With("resource", info.String())
			log.Error("Skipping an object that cannot be read; other objects of this kind are served.",
				"namespace", e.Namespace, "name", e.Name, "uid", e.UID, "error", e.Err)
			if last {
				log.Error("Too many objects cannot be read; skipping further ones of the namespace without logging them.", "namespace", e.Namespace)
			}
		}
		if then != nil {
			then(e.Identity)
		}
	}
}
