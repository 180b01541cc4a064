package faults_test

import (
	"sync"
	"testing"
)

// rule strikes some of the requests.
type rule struct {
	match  func(*exchange) bool
	effect effect

	mu       sync.Mutex
	seen     int
	from, to int // which of the matching ones are struck, from 1 on; to 0 is without an end
	struck   int
	over     bool
}

// effect is what becomes of a request: an answer, or none.
type effect func(*exchange)

// strike makes the effect befall requests that match: all of them until the rule
// ends, unless it is narrowed.
func (p *proxy) strike(match func(*exchange) bool, e effect) *rule {
	r := &rule{match: match, effect: e, from: 1}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return r
}

// only narrows the rule to the n-th request, counted from 1.
func (r *rule) only(n int) *rule { return r.between(n, n) }

// first narrows the rule to the first n requests.
func (r *rule) first(n int) *rule { return r.between(1, n) }

func (r *rule) between(from, to int) *rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from, r.to = from, to
	return r
}

// end makes the rule strike no more.
func (r *rule) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// checkStruck makes a test fail whose rules have not struck anything.
func (p *proxy) checkStruck(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	struck := 0
	for _, r := range p.rules {
		r.mu.Lock()
		struck += r.struck
		r.mu.Unlock()
	}
	if len(p.rules) > 0 && struck == 0 {
		t.Error("the fault has struck nothing")
	}
	t.Logf("%d requests were struck", struck)
}

// takes tells whether the rule strikes the request.
func (r *rule) takes(x *exchange) bool {
	if !r.match(x) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	r.seen++
	if r.seen < r.from || r.to > 0 && r.seen > r.to {
		return false
	}
	r.struck++
	return true
}

// effectOn is that of the first rule that strikes.
func (p *proxy) effectOn(x *exchange) effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		if r.takes(x) {
			return r.effect
		}
	}
	return (*exchange).pass
}

// What rules match.

func everything(*exchange) bool { return true }

func writes(x *exchange) bool { return x.kind == "write" && x.resource == patients }

func requests(x *exchange) bool { return x.kind != "watch" }

func watches(x *exchange) bool { return watchesOf(patients)(x) }

func watchesOf(resource string) func(*exchange) bool {
	return func(x *exchange) bool { return x.kind == "watch" && x.resource == resource }
}

// writesTo matches the writes to a subresource, or to objects themselves for "".
func writesTo(subresource string) func(*exchange) bool {
	return func(x *exchange) bool { return writes(x) && x.subresource == subresource }
}

// finalizing matches the patches that add or remove finalizers.
func finalizing(x *exchange) bool {
	return writes(x) && x.r.Header.Get("Content-Type") == "application/json-patch+json"
}

// eachFirst matches those of the requests that were not made before.
func eachFirst(match func(*exchange) bool) func(*exchange) bool {
	var mu sync.Mutex
	seen := map[string]int{}
	return func(x *exchange) bool {
		if !match(x) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		key := x.name + "/" + x.subresource + " " + string(x.body)
		seen[key]++
		return seen[key] == 1
	}
}
