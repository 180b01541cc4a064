package faults_test

import (
	"testing"
	"time"

	"gopf.dev/gopf"
)

// hitting makes the effect befall some of the requests, once in each phase.
func hitting(match func(*exchange) bool, n int, e effect) func(*proxy) {
	return func(p *proxy) { p.strike(match, e).only(n) }
}

func TestFaultsOfWrites(t *testing.T) {
	t.Parallel()
	const retried, throttled = "Request attempt #1 failed; will retry", "Throttling for"
	effects := map[string]effect{
		"lost answer": loses, "garbled answer": garbles, "answer cut": cutsAfter(300),
		"never answered": neverAnswers, "answered in part": neverEnds,
	}
	kinds := map[string]func(*exchange) bool{
		"of a status": writesTo("status"), "of a finalizer": finalizing,
		"of a record": func(x *exchange) bool { return writesTo("")(x) && !finalizing(x) },
	}
	for name, e := range effects {
		for kind, match := range kinds {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				o := admit(t, hasty)
				o.proxy.strike(eachFirst(match), e)
				o.live(fault{})
			})
		}
	}
	for name, f := range map[string]fault{
		"a request that never arrives":  {begin: hitting(writes, 1, neverSends)},
		"a connection broken before":    {begin: hitting(writes, 1, drops)},
		"401 once":                      {begin: hitting(writes, 1, answers(401))},
		"403 once":                      {begin: hitting(writes, 1, answers(403))},
		"404 once, though it is there":  {begin: hitting(writesTo("status"), 1, answers(404))},
		"409 once":                      {begin: hitting(writes, 1, answers(409))},
		"429 once":                      {begin: hitting(writes, 1, answers(429)), seen: retried},
		"429 once, with a hint":         {begin: hitting(writes, 1, answers(429, "Retry-After", "1")), seen: retried},
		"500 once":                      {begin: hitting(writes, 1, answers(500)), seen: retried},
		"503 once, with a hint":         {begin: hitting(writes, 1, answers(503, "Retry-After", "1")), seen: retried},
		"504 once":                      {begin: hitting(writes, 1, answers(504))},
		"a slow answer":                 {begin: hitting(writes, 1, delays(time.Second))},
		"an answer later than its time": {begin: hitting(writes, 1, delays(3*time.Second))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			treat(t, f, hasty)
		})
	}
	t.Run("409 on every first write", func(t *testing.T) {
		t.Parallel()
		o := admit(t)
		o.proxy.strike(eachFirst(writes), answers(409))
		o.live(fault{})
	})
	t.Run("answers to all writes are lost", func(t *testing.T) {
		t.Parallel()
		o := admit(t)
		o.proxy.strike(writes, loses)
		o.live(fault{})
	})
}

// The deadline of requests is 30 s, but nobody waits for it: the object is read on
// another connection.
func TestWritesWithoutAResponseAreConfirmedWhileTheyStayOpen(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]effect{"no response": neverAnswers, "no body": neverEnds} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := admit(t, func(op *gopf.Operator) { op.Settings.Networking.RequestTimeout = 30 * time.Second })
			o.proxy.strike(eachFirst(finalizing), e)
			o.live(fault{within: 15 * time.Second})
		})
	}
}
