package faults_test

import (
	"sync"
	"testing"
	"time"
)

func TestConnectionsThatAreCut(t *testing.T) {
	t.Parallel()
	treat(t, fault{begin: func(p *proxy) { p.lines.cutAll() }})
}

// No byte passes any more on the connections that there are, and for a while not
// on new ones either, as when a firewall forgets them.
func TestConnectionsThatAreFrozen(t *testing.T) {
	t.Parallel()
	treat(t, fault{
		begin: func(p *proxy) { p.lines.freezeAll() },
		lasts: 3 * time.Second,
		end:   func(p *proxy) { p.lines.thaw() },
	}, hasty)
}

// Connections end after every number of bytes that there is, with some steps in
// between: within a handshake, a request, an answer, an event.
func TestConnectionsThatAreCutAtAnyByte(t *testing.T) {
	t.Parallel()
	for name, direction := range map[string]func(n int) (in, out int){
		"of requests": func(n int) (int, int) { return n, -1 },
		"of answers":  func(n int) (int, int) { return -1, n },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			treat(t, fault{
				begin: func(p *proxy) {
					p.lines.limit(func() (int, int) {
						n += 61
						return direction(n % 7919)
					})
					p.lines.cutAll()
				},
				lasts: 4 * time.Second,
				end:   func(p *proxy) { p.lines.limit(nil) },
			})
			t.Logf("%d connections were cut", n/61)
		})
	}
}

// For a while, every answer to a write and every stream ends at another byte of
// what it has to say. Lengths that are enough for something, and such that are not,
// take turns.
func TestAnswersAndStreamsThatAreCutAtAnyByte(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	n := 0
	next := func() int {
		mu.Lock()
		defer mu.Unlock()
		n += 757
		return n % 2999
	}
	var rules []*rule
	treat(t, fault{
		begin: func(p *proxy) {
			rules = []*rule{
				p.strike(writes, func(x *exchange) { cutsAfter(next())(x) }),
				p.strike(watches, func(x *exchange) { events(cutAt(next()))(x) }),
			}
			p.cutStreams(patients)
		},
		lasts: 4 * time.Second,
		end: func(*proxy) {
			for _, r := range rules {
				r.end()
			}
		},
	}, hasty)
}
