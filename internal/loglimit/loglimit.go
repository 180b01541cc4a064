// Package loglimit limits log lines: the rate and the length of those that other
// parties can cause, and the repetition of those that need to be logged only once.
package loglimit

import (
	"sync"
	"time"
)

const (
	burst    = 5           // lines of one kind per interval
	interval = time.Minute // after which more lines are logged
	quoted   = 200         // characters of quoted texts
	named    = 512         // characters of names; Kubernetes allows 253
)

// Limiter allows a few log lines of each kind per minute. The zero value is ready for
// use. It is safe for concurrent use.
type Limiter struct {
	mu    sync.Mutex
	kinds map[string]*count
}

type count struct {
	since      time.Time
	passed     int
	suppressed int
}

// Allow reports whether a line may be logged now, and how many lines of its kind were
// suppressed since the last one. There must be few kinds, because they are kept
// forever.
func (l *Limiter) Allow(kind string) (ok bool, suppressed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kinds == nil {
		l.kinds = map[string]*count{}
	}
	c := l.kinds[kind]
	if c == nil {
		c = &count{since: time.Now()}
		l.kinds[kind] = c
	}
	if time.Since(c.since) >= interval {
		c.since, c.passed = time.Now(), 0
	}
	if c.passed >= burst {
		c.suppressed++
		return false, 0
	}
	c.passed++
	suppressed, c.suppressed = c.suppressed, 0
	return true, suppressed
}

// Bucket allows log lines of one kind at a rate that ordinary operation does not reach. The
// zero value is ready for use. It is safe for concurrent use.
type Bucket struct {
	mu         sync.Mutex
	used       float64   // lines of the burst that are used up
	at         time.Time // when used was computed
	suppressed int
}

const (
	bucketBurst = 500 // lines at once
	bucketRate  = 20  // lines per second afterwards
)

// Allow reports whether a line may be logged now, and how many lines were suppressed since
// the last one.
func (b *Bucket) Allow() (ok bool, suppressed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.used = max(0, b.used-now.Sub(b.at).Seconds()*bucketRate)
	b.at = now
	if b.used+1 > bucketBurst {
		b.suppressed++
		return false, 0
	}
	b.used++
	suppressed, b.suppressed = b.suppressed, 0
	return true, suppressed
}

// Cut returns at most 200 characters of a text from another party.
func Cut(text string) string { return cut(text, quoted) }

// CutName returns at most 512 characters of a name, namespace or uid from another party.
// Names that Kubernetes accepts are never cut.
func CutName(name string) string { return cut(name, named) }

func cut(text string, limit int) string {
	n := 0
	for i := range text {
		if n == limit {
			return text[:i] + "…"
		}
		n++
	}
	return text
}
