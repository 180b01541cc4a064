package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheNamespaceIsInTheBeginningOfAReview(t *testing.T) {
	const start = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","kind":{"group":"","version":"v1","kind":"X"},`
	for text, want := range map[string]string{
		start + `"name":"x","namespace":"a","operation":"CREATE"`:                                "a",
		start + `"name":"x","namespace":"a"`:                                                     "a",
		start + `"name":"x","namespace":"a","object":{"namespace":"b"}}}`:                        "a",
		start + `"name":"x","namespace":"\u0061"`:                                                "a",
		start + `"name":"x","namespace":"a`:                                                      "?",
		start + `"name":"x","operation":"CREATE","userInfo":{`:                                   "",
		start + `"name":"x","object":{"metadata":{"namespace":"b`:                                "",
		start + `"name":"x"}}`:                                                                   "",
		start + `"name":"x","operation":"CREATE","namespace":"a",`:                               "a",
		start + `"name":"` + strings.Repeat("x", beginningSize):                                  "?",
		start + `"namespace":"` + strings.Repeat("x", maxNamespace) + `"`:                        strings.Repeat("x", maxNamespace),
		start + `"operation":"CREATE","namespace":"` + strings.Repeat("x", maxNamespace+1) + `"`: "?",
		start + `"namespace":7,`:                                                                 "?",
		`{"namespace":"a","request":7}`:                                                          "?",
		`{"request":{"kind":{"namespace":"a"}}}`:                                                 "",
		`[{"request":{"namespace":"a"}}]`:                                                        "?",
		``:                                                                                       "?",
		`nonsense`:                                                                               "?",
	} {
		if got := namespaceOf([]byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestOneSenderLeavesRoomForOthers(t *testing.T) {
	for of, want := range map[int64]int64{1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 8: 6, 64: 48, 100: 75} {
		if got := threeQuarters(of); got != want {
			t.Errorf("of %d: %d, want %d", of, got, want)
		}
	}
}

// party is a namespace of a client with what it has, when it was served and for what it waits.
type party struct {
	client, namespace string
	used, turn        int64
	waits             []int64 // weights, in the order of arrival
}

// budgetOf returns a budget in which the waiters of all parties arrived one after the other.
func budgetOf(size int64, parties []party) *budget {
	b := newBudget(size)
	now := time.Now()
	for _, p := range parties {
		s, l := b.of(sender{p.client, p.namespace})
		b.give(sender{p.client, p.namespace}, p.used)
		s.turn, l.turn = max(s.turn, p.turn), p.turn
		for _, weight := range p.waits {
			now = now.Add(time.Second)
			l.waiting = append(l.waiting, &waiter{weight: weight, since: now, ready: make(chan struct{})})
		}
	}
	return &b
}

// lengths returns the numbers of waiters by client and namespace.
func (b *budget) lengths() map[string]int {
	found := map[string]int{}
	for client, s := range b.peers {
		for namespace, l := range s.lines {
			if n := len(l.waiting); n > 0 {
				found[client+namespace] = n
			}
		}
	}
	return found
}

// The size is 64. One client can have 48 of it, and one namespace 36.
func TestWhoIsServedNext(t *testing.T) {
	for name, c := range map[string]struct {
		parties []party
		want    string
	}{
		"nobody waits":                               {[]party{{"a", "1", 8, 1, nil}}, ""},
		"the first one":                              {[]party{{"a", "1", 0, 0, []int64{1}}, {"b", "1", 0, 0, []int64{1}}}, "a1"},
		"the client that has less":                   {[]party{{"a", "1", 2, 1, []int64{1}}, {"b", "1", 1, 2, []int64{1}}}, "b1"},
		"the client that has less in all namespaces": {[]party{{"a", "1", 2, 1, nil}, {"a", "2", 0, 0, []int64{1}}, {"b", "1", 1, 2, []int64{1}}}, "b1"},
		"the client that was served longer ago":      {[]party{{"a", "1", 0, 2, []int64{1}}, {"b", "1", 0, 1, []int64{1}}}, "b1"},
		"the namespace that has less":                {[]party{{"a", "1", 2, 1, []int64{1}}, {"a", "2", 1, 2, []int64{1}}}, "a2"},
		"the namespace that was served longer ago":   {[]party{{"a", "1", 0, 2, []int64{1}}, {"a", "2", 0, 1, []int64{1}}}, "a2"},
		"the namespace that waits longer":            {[]party{{"a", "1", 0, 0, []int64{1}}, {"a", "2", 0, 0, []int64{1}}}, "a1"},
		"a namespace with its whole share":           {[]party{{"a", "1", 36, 1, []int64{1}}}, ""},
		"a namespace with almost its whole share":    {[]party{{"a", "1", 35, 1, []int64{1}}}, "a1"},
		"another namespace beside it":                {[]party{{"a", "1", 36, 1, []int64{1}}, {"a", "2", 0, 0, []int64{12}}}, "a2"},
		"a client with its whole share":              {[]party{{"a", "1", 36, 1, nil}, {"a", "2", 12, 2, []int64{1}}}, ""},
		"another client beside it":                   {[]party{{"a", "1", 36, 1, nil}, {"a", "2", 12, 2, []int64{1}}, {"b", "1", 0, 0, []int64{16}}}, "b1"},
		"a heavy one is not passed in its namespace": {[]party{{"a", "1", 30, 1, []int64{8, 1}}}, ""},
		"nor by other namespaces":                    {[]party{{"a", "1", 36, 1, nil}, {"a", "2", 0, 0, []int64{20}}, {"a", "3", 1, 1, []int64{1}}}, ""},
		"nor by namespaces that a client invents":    {[]party{{"a", "1", 1, 1, nil}, {"a", "2", 0, 0, []int64{1}}, {"b", "1", 0, 2, []int64{36}}}, "b1"},
	} {
		b := budgetOf(64, c.parties)
		got := ""
		if s, l := b.next(); l != nil {
			for client := range b.peers {
				for namespace, other := range b.peers[client].lines {
					if other == l && b.peers[client] == s {
						got = client + namespace
					}
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %q is served, want %q", name, got, c.want)
		}
	}
}

// The newcomer is of namespace 1 of client a.
func TestWhoIsRefusedIfTheLineIsFull(t *testing.T) {
	ones := func(n int) []int64 { return slices.Repeat([]int64{1}, n) }
	for name, c := range map[string]struct {
		parties []party
		refused string // empty means the newcomer
	}{
		"the newcomer, if it is alone":              {[]party{{"a", "1", 0, 0, ones(4)}}, ""},
		"the newcomer, if its namespace has most":   {[]party{{"a", "1", 0, 0, ones(3)}, {"a", "2", 0, 0, ones(1)}}, ""},
		"the newcomer, if another one has as many":  {[]party{{"a", "1", 0, 0, ones(2)}, {"a", "2", 0, 0, ones(2)}}, ""},
		"one of the namespace with most":            {[]party{{"a", "1", 0, 0, ones(1)}, {"a", "2", 0, 0, ones(3)}}, "a2"},
		"one of it, if the newcomer is the first":   {[]party{{"a", "2", 0, 0, ones(1)}, {"a", "3", 0, 0, ones(3)}}, "a3"},
		"the newcomer, whatever other clients have": {[]party{{"a", "1", 0, 0, ones(4)}, {"b", "1", 0, 0, ones(4)}, {"b", "2", 0, 0, ones(4)}}, ""},
	} {
		b := budgetOf(64, c.parties)
		before := b.lengths()
		s, l := b.of(sender{"a", "1"})
		if s.waiting() != 4 {
			t.Fatalf("%s: %d wait", name, s.waiting())
		}
		var newest *waiter
		if c.refused != "" {
			all := s.lines[c.refused[1:]].waiting
			newest = all[len(all)-1]
			before[c.refused]--
		}
		if got := s.refuse(l); got != (c.refused != "") {
			t.Errorf("%s: another one is refused: %v", name, got)
		}
		if newest != nil && !(newest.served() && newest.refused) {
			t.Errorf("%s: the newest waiter is not refused", name)
		}
		if after := b.lengths(); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%s: %v wait, want %v", name, after, before)
		}
	}
}

// One tenant keeps the line full of requests that take its whole share. Another one waits for
// one of them at most, and is not refused.
func TestNamespacesTakeTurnsInTheLineOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(64)
		b.queue = 8
		ctx, cancel := context.WithCancel(t.Context())
		var refused atomic.Int32
		var flood sync.WaitGroup
		for range 12 {
			flood.Go(func() {
				for ctx.Err() == nil {
					weight, err := b.acquire(ctx, sender{"a", "flood"}, 1000)
					if weight > 36 {
						t.Errorf("one namespace has %d of 64", weight)
					}
					if err != nil {
						refused.Add(1)
					}
					time.Sleep(time.Second)
					b.release(sender{"a", "flood"}, weight)
				}
			})
			synctest.Wait()
		}
		for weight, longest := range map[int64]time.Duration{1: 0, 12: 0, 13: time.Second, 36: time.Second, 1000: time.Second} {
			began := time.Now()
			got, err := b.acquire(ctx, sender{"a", "quiet"}, weight)
			if took := time.Since(began); err != nil || took > longest {
				t.Errorf("a weight of %d: %v after %v", weight, err, took)
			}
			b.release(sender{"a", "quiet"}, got)
		}
		if refused.Load() == 0 {
			t.Error("the line was never full")
		}
		cancel()
		flood.Wait()
		if b.used != 0 || len(b.peers) != 0 {
			t.Errorf("%d are used by %d clients in the end", b.used, len(b.peers))
		}
	})
}

// A request that is larger than the budget leaves a quarter of it to other clients.
func TestAnOversizedRequestLeavesRoomForOthers(t *testing.T) {
	b := newBudget(64)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, c := range []struct {
		by     sender
		weight int64
		want   int64 // 0 means that there is no room
	}{
		{sender{"a", "1"}, 1000, 36},
		{sender{"a", "1"}, 1000, 0},
		{sender{"a", "2"}, 1000, 0},
		{sender{"b", "1"}, 1000, 0}, // at most one of them
		{sender{"a", "2"}, 12, 12},
		{sender{"a", "3"}, 1, 0},
		{sender{"b", "1"}, 16, 16},
		{sender{"c", "1"}, 1, 0},
	} {
		if got, err := b.acquire(ctx, c.by, c.weight); got != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("%d: %v gets %d (%v), want %d", i, c.by, got, err, c.want)
		}
	}
}

// Otherwise small reviews of many namespaces could take the room for which a larger one waits.
func TestTheSpareIsNoRoomOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := splitBudget(100, 5) // 80, of which one client can have 60 and a namespace 45, and a spare of 20
		by := func(namespace string) sender { return sender{"10.0.0.1", namespace} }
		acquire := func(namespace string, weight int64) (served func() bool) {
			time.Sleep(time.Millisecond) // the order of arrival counts
			done := make(chan struct{})
			go func() {
				if _, err := b.acquire(t.Context(), by(namespace), weight); err == nil {
					close(done)
				}
			}()
			synctest.Wait()
			return func() bool {
				synctest.Wait()
				select {
				case <-done:
					return true
				default:
					return false
				}
			}
		}
		if !acquire("first", 40)() {
			t.Fatal("an empty budget has no room")
		}
		next, small := acquire("next", 40), 0
		for i := range 20 {
			if acquire(fmt.Sprint("small-", i), 5)() {
				small++
			}
		}
		if next() || small != 3 {
			t.Errorf("the second one is served: %v; so are %d small ones, want 3: three quarters of the spare", next(), small)
		}
		b.release(by("first"), 40)
		if !next() {
			t.Error("small ones have the room for which another one waits")
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.used > b.size || b.spared > b.spare {
			t.Errorf("%d and %d are used", b.used, b.spared)
		}
	})
}
