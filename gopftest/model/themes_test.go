package model_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"gopf.dev/gopf/gopftest"
)

// theme is what happens more often in some worlds than in others. Numbers are
// percentages, weights are relative to each other.
type theme struct {
	name       string
	slow       int   // handlers that take time or fail at first
	deletion   int   // worlds with a deletion handler
	background int   // worlds with each of daemons, timers, indices and event handlers
	del        int   // deletions, of the users' actions
	back       int   // changes taken back, of the changes
	relabel    int   // changes of metadata, of the changes
	objects    []int // how many there are: one of these
	workers    []int // how many objects may be handled at the same time: one of these
	trouble    []int // troubles, of all actions: one of these
	kinds      []int // weights of troubles: ends, pauses, relists, changes beside, stream faults, request faults
}

var themes = []theme{
	{"everything", 45, 50, 30, 15, 35, 15, []int{1, 1, 2, 3}, []int{0, 0, 1, 2}, []int{0, 10, 25, 50}, []int{12, 28, 14, 12, 16, 18}},
	{"changes", 85, 20, 10, 3, 50, 10, []int{1}, []int{0}, []int{0, 0, 10}, []int{10, 10, 10, 40, 10, 20}},
	{"deletions", 70, 100, 60, 30, 20, 10, []int{1, 2}, []int{0, 0, 1}, []int{30, 50}, []int{10, 35, 30, 5, 10, 10}},
	{"streams", 70, 30, 20, 8, 30, 10, []int{2, 3}, []int{0, 1, 1}, []int{30, 50}, []int{3, 5, 15, 5, 60, 12}},
}

// environment is how quick the cluster is.
type environment struct {
	lag     time.Duration // of events after changes
	latency time.Duration // of requests, and of their responses
}

func randomEnvironment(r *rand.Rand) environment {
	return environment{
		lag:     pick(r, []time.Duration{0, 20 * time.Millisecond, 20 * time.Millisecond, 2 * time.Second}),
		latency: pick(r, []time.Duration{0, 0, 5 * time.Millisecond}),
	}
}

func (e environment) String() string {
	return fmt.Sprintf("events lag %s, requests take 2×%s", e.lag, e.latency)
}

// apply makes the cluster as slow as it is to be, for good.
func (e environment) apply(c *gopftest.Cluster) {
	if e.lag > 0 {
		c.Fault(gopftest.Requests("watch", "things"), gopftest.DelayEvents(e.lag))
	}
	if e.latency > 0 {
		c.Fault(gopftest.Requests("", "").Where(ofOperator), gopftest.Hold(e.latency), gopftest.HoldAnswer(e.latency))
	}
}

// weighted is an index, with a chance in proportion to its weight.
func weighted(r *rand.Rand, weights []int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := r.IntN(sum)
	for i, w := range weights {
		if n -= w; n < 0 {
			return i
		}
	}
	return 0
}
