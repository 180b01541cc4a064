package guard

import (
	"crypto/sha256"
	"sync"
	"time"
)

// cache keeps a limited number of verdicts for a limited time. It is safe for concurrent
// use.
type cache struct {
	most int

	mu      sync.Mutex
	entries map[[sha256.Size]byte]entry
}

type entry struct {
	verdict verdict
	until   time.Time
}

func newCache(most int) *cache {
	return &cache{most: most, entries: map[[sha256.Size]byte]entry{}}
}

// get returns a verdict that is still valid.
func (c *cache) get(key [sha256.Size]byte, now time.Time) (verdict, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok || !now.Before(e.until) {
		delete(c.entries, key)
		return unclear, false
	}
	return e.verdict, true
}

// put keeps a verdict. In a full cache, it replaces another one. Refusals never replace
// valid permissions: clients without permissions could otherwise make the operator review
// all others again.
func (c *cache) put(key [sha256.Size]byte, v verdict, now time.Time, lifetime time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.entries[key]; !known && len(c.entries) >= c.most && !c.makeRoom(v, now) {
		return
	}
	c.entries[key] = entry{v, now.Add(lifetime)}
}

// makeRoom removes the expired verdicts, or else the refusal that expires first, or else,
// for a permission, the permission that expires first. It reports whether there is room.
// The lock must be held.
func (c *cache) makeRoom(v verdict, now time.Time) bool {
	var worst [sha256.Size]byte
	var found entry
	for key, e := range c.entries {
		switch {
		case !now.Before(e.until):
			delete(c.entries, key)
		case e.verdict == allowed && v != allowed:
		case found.until.IsZero(), found.verdict == allowed && e.verdict != allowed,
			(found.verdict == allowed) == (e.verdict == allowed) && e.until.Before(found.until):
			worst, found = key, e
		}
	}
	if len(c.entries) < c.most {
		return true
	}
	if found.until.IsZero() {
		return false
	}
	delete(c.entries, worst)
	return true
}
