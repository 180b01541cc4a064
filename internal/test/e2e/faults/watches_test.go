package faults_test

import (
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// on makes the effect befall the next watch of the objects, and ends the one that
// is open: the fault of a stream that has to be made anew.
func on(e effect) func(*proxy) {
	return func(p *proxy) {
		p.strike(watches, e).first(1)
		p.cutStreams(patients)
	}
}

func TestFaultsOfStreams(t *testing.T) {
	t.Parallel()
	const notNow, replaced = "Cannot list or watch the resource", "The watch failed"
	for name, f := range map[string]fault{
		"410 as an answer":           {begin: on(answers(410)), seen: notNow},
		"410 in the stream":          {begin: on(events(breaking(1, errorEvent(410)))), seen: replaced},
		"410 in the stream, later":   {begin: on(events(breaking(3, errorEvent(410)))), seen: replaced},
		"404 once":                   {begin: on(answers(404)), seen: notNow},
		"403 once":                   {begin: on(answers(403)), seen: notNow},
		"400 once":                   {begin: on(answers(400)), seen: notNow},
		"401 once":                   {begin: on(answers(401))},
		"429 once":                   {begin: on(answers(429, "Retry-After", "1")), seen: notNow},
		"500 in the stream":          {begin: on(events(breaking(1, errorEvent(500)))), seen: replaced},
		"401 in the stream":          {begin: on(events(breaking(2, errorEvent(401)))), seen: replaced},
		"a malformed event":          {begin: on(events(breaking(1, nonsense))), seen: replaced},
		"half an event":              {begin: on(events(breaking(1, half)))},
		"half an event, later":       {begin: on(events(breaking(4, half)))},
		"cut after the head":         {begin: on(cutsAfter(0))},
		"no answer":                  {begin: on(neverSends), seen: notNow},
		"no body":                    {begin: on(neverEnds)},
		"a slow answer":              {begin: on(delays(time.Second))},
		"every event twice":          {begin: on(events(twice))},
		"older events after newer":   {begin: on(events(replayed))},
		"the first event again":      {begin: on(events(haunted))},
		"events in another order":    {begin: on(events(swapped))},
		"a streamed list is refused": {begin: relisting(answers(500)), seen: notNow},
		"a streamed list is broken":  {begin: relisting(events(breaking(1, half))), seen: notNow},
		"a streamed list stays open": {begin: relisting(neverEnds), seen: notNow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			treat(t, f, hasty)
		})
	}
}

// relisting makes the effect befall the first watch that begins with a list, and
// makes there be one.
func relisting(e effect) func(*proxy) {
	return func(p *proxy) {
		on(answers(410))(p)
		p.strike(func(x *exchange) bool {
			return watches(x) && x.r.URL.Query().Get("sendInitialEvents") == "true"
		}, e).first(1)
	}
}

func TestEventsThatAreLateForEver(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]time.Duration{"by 3 s": 3 * time.Second, "by 8 s": 8 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := admit(t, func(op *gopf.Operator) { op.Settings.Watching.InactivityTimeout = time.Minute })
			o.proxy.strike(watches, events(late(d)))
			o.proxy.cutStreams(patients)
			o.live(fault{within: d + soon})
		})
	}
}

func TestStreamsThatAreCutAllTheTime(t *testing.T) {
	t.Parallel()
	var stop chan struct{}
	treat(t, fault{
		lasts: 3 * time.Second,
		begin: func(p *proxy) {
			stop = make(chan struct{})
			go func(stop chan struct{}) {
				for {
					select {
					case <-time.After(200 * time.Millisecond):
						p.cutStreams("")
					case <-stop:
						return
					}
				}
			}(stop)
		},
		end: func(*proxy) { close(stop) },
	})
}

func TestAFrozenStream(t *testing.T) {
	t.Parallel()
	treat(t, fault{begin: func(p *proxy) { p.freezeStreams(patients) }, seen: "no event, not even a bookmark"})
}

// By default, the inactivity timeout is the last resort: before that the server is
// asked whether there is something that the stream should have told.
func TestAFrozenStreamIsFoundOutByAsking(t *testing.T) {
	t.Parallel()
	o := admit(t, func(op *gopf.Operator) {
		op.Settings.Watching = gopf.DefaultSettings().Watching
	})
	kit.Eventually(t, func() error { return o.health("readyz") }) // the stream has sent all objects
	o.proxy.freezeStreams(patients)
	o.live(fault{within: 20 * time.Second}) // which is long before the timeout
}
