// Package loglimit bounds what other parties can write into the log of an operator:
// how often, and how much of their own words.
package loglimit

import (
	"sync"
	"time"
)

const (
	burst    = 5           // lines of one kind in an interval
	interval = time.Minute // after which more are logged
	quoted   = 200         // characters of texts that are not our own
)

// Limiter lets a few log lines of each kind pass in a minute. Its zero value is ready
// for use. Its methods may be called concurrently.
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
// suppressed since the last one. Kinds must be few: they are kept for good.
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

// Cut returns at most 200 characters of a text of others.
func Cut(text string) string {
	n := 0
	for i := range text {
		if n == quoted {
			return text[:i] + "…"
		}
		n++
	}
	return text
}
