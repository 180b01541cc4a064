package faults_test

import (
	"sync"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
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

// The connections that there are freeze, and new ones work. With the default
// settings, pings and the first probe of the silent watch notice it, long before
// requests have their timeout and streams theirs.
func TestFrozenConnectionsAreNoticedByPingsAndProbes(t *testing.T) {
	t.Parallel()
	o := admit(t, func(op *gopf.Operator) {
		op.Settings.Watching = gopf.DefaultSettings().Watching
		op.Settings.Networking.RequestTimeout = gopf.DefaultSettings().Networking.RequestTimeout
	})
	kit.Eventually(t, func() error { return o.health("readyz") }) // a list that never ends is given up later
	o.proxy.lines.freezeAll()
	o.proxy.lines.thaw()
	o.space.do(creation)
	began := time.Now()
	if err := o.settles(creation, 25*time.Second); err != nil {
		t.Fatal(err)
	}
	t.Logf("done %.1f s after the connections were frozen", time.Since(began).Seconds())
	o.checkWell(creation)
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
				wild:  true, // the response to a write and to its retry may both be cut
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
