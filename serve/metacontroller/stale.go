package metacontroller

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Limits of the wait for a parent's own writes.
const (
	stalePause = 10 * time.Millisecond
	staleLimit = 5 * time.Second
)

// write is the result of a write of a parent.
type write struct {
	version uint64
	at      time.Time
}

// wrote remembers a version of a parent that a write returned.
func (c *controller) wrote(k key, parent *unstructured.Unstructured) {
	version, err := strconv.ParseUint(parent.GetResourceVersion(), 10, 64)
	if err != nil {
		return // versions of this server cannot be compared
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if version > c.written[k].version {
		c.written[k] = write{version, time.Now()}
	}
}

// stale reports whether the cache lacks the last write of this controller to a parent: the
// hook would get a stale status. After a time limit, it reports false even if the cache is behind.
func (c *controller) stale(k key, cached *unstructured.Unstructured) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.written[k]
	version, err := strconv.ParseUint(cached.GetResourceVersion(), 10, 64)
	return ok && err == nil && version < last.version && time.Since(last.at) < staleLimit
}
