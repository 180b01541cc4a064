package faults_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// seedsVariable says which seeds a campaign has: "7" is one, "100-199" are many.
const seedsVariable = "GOPF_FAULTS_SEEDS"

// weather makes random faults, several at a time, reproducibly as far as the plan
// goes; what it strikes depends on what happens meanwhile.
type weather struct {
	p *proxy
	t *testing.T

	mu   sync.Mutex
	dice *rand.Rand
	end  chan struct{}
	done sync.WaitGroup
}

func (w *weather) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.IntN(n)
}

// some matches a part of what another matches.
func (w *weather) some(percent int, match func(*exchange) bool) func(*exchange) bool {
	return func(x *exchange) bool { return match(x) && w.roll(100) < percent }
}

type named[T any] struct {
	name string
	is   T
}

// effect is any of the effects.
func (w *weather) effect() named[effect] {
	ms := func(most int) time.Duration { return time.Duration(w.roll(most)) * time.Millisecond }
	codes := []int{401, 403, 404, 409, 410, 429, 500, 502, 503, 504}
	code, cut, delay, n := codes[w.roll(len(codes))], w.roll(2000), ms(3000), 1+w.roll(4)
	effects := []named[effect]{
		{fmt.Sprint("answers ", code), answers(code)},
		{fmt.Sprint("answers ", code, " and a hint"), answers(code, "Retry-After", "1")},
		{"drops", drops}, {"loses", loses}, {"garbles", garbles},
		{fmt.Sprint("cuts after ", cut), cutsAfter(cut)},
		{"never sends", neverSends}, {"never answers", neverAnswers}, {"never ends", neverEnds},
		{fmt.Sprint("delays by ", delay), delays(delay)},
		{"events twice", events(twice)}, {"events replayed", events(replayed)}, {"events haunted", events(haunted)},
		{fmt.Sprint("events late by ", delay), events(late(delay))},
		{fmt.Sprint("half of event ", n), events(breaking(n, half))},
		{fmt.Sprint("nonsense for event ", n), events(breaking(n, nonsense))},
		{fmt.Sprintf("error %d for event %d", code, n), events(breaking(n, errorEvent(code)))},
	}
	return effects[w.roll(len(effects))]
}

func (w *weather) match() named[func(*exchange) bool] {
	percent := 10 + w.roll(91)
	matches := []named[func(*exchange) bool]{
		{"everything", everything}, {"requests", requests}, {"writes", writes}, {"watches", watches}, {"watches", watches},
		{"finalizers", finalizing}, {"statuses", writesTo("status")}, {"objects", writesTo("")},
	}
	m := matches[w.roll(len(matches))]
	return named[func(*exchange) bool]{fmt.Sprintf("%d%% of %s", percent, m.name), w.some(percent, m.is)}
}

// begin lets it rage until calm is called.
func (w *weather) begin(*proxy) {
	w.end = make(chan struct{})
	for range 1 + w.roll(3) {
		w.done.Go(func() {
			for {
				e, m := w.effect(), w.match()
				w.t.Logf("%s: %s", m.name, e.name)
				r := w.p.strike(m.is, e.is)
				w.violence()
				over := w.pause(100 + w.roll(1500))
				r.end()
				if over {
					return
				}
			}
		})
	}
}

// violence is what befalls the connections as such, sometimes.
func (w *weather) violence() {
	switch w.roll(8) {
	case 0, 1, 2:
		w.p.cutStreams("")
	case 3:
		w.p.lines.cutAll()
	case 4:
		w.t.Log("frozen streams")
		w.p.freezeStreams("")
	case 5:
		w.t.Log("frozen connections")
		w.p.lines.freezeAll()
		w.pause(w.roll(1000))
		w.p.lines.thaw()
	}
}

// pause tells whether it is over.
func (w *weather) pause(ms int) bool {
	select {
	case <-w.end:
		return true
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return false
	}
}

func (w *weather) calm(p *proxy) {
	close(w.end)
	w.done.Wait()
	p.lines.thaw()
}

func TestFaultsAtRandom(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(t) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			o := admit(t, hasty)
			w := &weather{p: o.proxy, t: t, dice: rand.New(rand.NewPCG(seed, 0))}
			// A frozen stream is found out by the inactivity timeout, a frozen
			// connection by a request that gets no answer.
			o.live(fault{begin: w.begin, lasts: 3 * time.Second, end: w.calm, wild: true})
		})
	}
}

func seeds(t *testing.T) (all []uint64) {
	t.Helper()
	first, last := uint64(1), uint64(6)
	if text := os.Getenv(seedsVariable); text != "" {
		if n, _ := fmt.Sscanf(text, "%d-%d", &first, &last); n < 2 {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", seedsVariable, err)
			}
			first, last = n, n
		}
	}
	for seed := first; seed <= last; seed++ {
		all = append(all, seed)
	}
	return all
}
