package lease

import (
	"time"

	"gopf.dev/gopf/internal/object"
)

// HolderOf returns the holder of a Lease that has renewed it recently enough. It is empty if
// the lease is free.
func HolderOf(b *object.Body, now time.Time) (holder string, err error) {
	r, err := parse(b)
	if err != nil || !r.renewed.Add(r.duration).After(now) {
		return "", err
	}
	return r.holder, nil
}
