package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

type api struct {
	mu     sync.Mutex
	posted []string
	fail   error
	slow   time.Duration

	bytes bool     // it takes at most 1,024 bytes in a message
	taken []string // messages that it took
}

func (a *api) Create(ctx context.Context, t kube.Target, raw []byte, _ ...kube.Param) (*object.Body, error) {
	select {
	case <-ctx.Done():
	case <-time.After(a.slow):
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var e struct{ Type, Reason, Message string }
	_ = json.Unmarshal(raw, &e)
	a.posted = append(a.posted, fmt.Sprintf("%s %s %s: %s", t.Namespace, e.Type, e.Reason, e.Message))
	if a.bytes && len(e.Message) > 1024 {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid}}
	}
	if a.fail == nil {
		a.taken = append(a.taken, e.Message)
	}
	return nil, a.fail
}

var about = object.Identity{APIVersion: "kopf.dev/v1", Kind: "KopfExample", Namespace: "ns", Name: "x", UID: "u"}

func run(t *testing.T, a *api, test func(p *Poster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := New(a, Config{Enabled: true, Component: "kopf", Instance: "dev", NamePrefix: "kopf-event-", Log: slog.New(slog.DiscardHandler)})
		go p.Run(t.Context())
		test(p)
	})
}

func TestRepeatedEventsArePostedWithTheirNumber(t *testing.T) {
	a := &api{}
	run(t, a, func(p *Poster) {
		for range 5 {
			p.Post(Event{about, "Normal", "Made", "it is made"})
		}
		p.Post(Event{about, "Warning", "Lost", "it is lost"})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		want := []string{"ns Normal Made: it is made", "ns Warning Lost: it is lost", "ns Normal Made: it is made (×4)"}
		if !slices.Equal(a.posted, want) {
			t.Errorf("got %q, want %q", a.posted, want)
		}
	})
}

func TestPostingNeverBlocksAndIsBounded(t *testing.T) {
	a := &api{slow: time.Hour, fail: errors.New("no")}
	run(t, a, func(p *Poster) {
		begun := time.Now()
		for i := range 5000 {
			p.Post(Event{about, "Normal", "Made", fmt.Sprint(i)})
		}
		if time.Since(begun) > 0 || p.lines.waiting != backlog {
			t.Errorf("it took %s, and %d events wait", time.Since(begun), p.lines.waiting)
		}
	})
}

// A tenant causes more events than the API server takes.
func TestEventsOfOneNamespaceDoNotDelayThoseOfOthers(t *testing.T) {
	a := &api{slow: 100 * time.Millisecond}
	run(t, a, func(p *Poster) {
		for i := range 5000 {
			p.Post(Event{about, "Normal", "Made", fmt.Sprint(i)})
		}
		other := about
		other.Namespace = "other"
		p.Post(Event{other, "Normal", "Made", "of another tenant"})
		time.Sleep(time.Second)
		a.mu.Lock()
		defer a.mu.Unlock()
		if !slices.Contains(a.posted, "other Normal Made: of another tenant") {
			t.Errorf("posted: %q", a.posted)
		}
	})
}

func TestEventsOfAllNamespacesAreBounded(t *testing.T) {
	var l lines
	put := 0
	for i := range 3 * wholeBacklog {
		if queued, _ := l.put(Event{About: object.Identity{Namespace: fmt.Sprint(i % 100)}, Message: fmt.Sprint(i)}); queued {
			put++
		}
	}
	var taken []string
	for e, ok := l.take(); ok; e, ok = l.take() {
		taken = append(taken, e.Message)
	}
	if put != wholeBacklog || len(taken) != put || l.waiting != 0 || len(l.of)+len(l.turns) != 0 {
		t.Errorf("%d of %d events were taken; %d wait, of %d namespaces", len(taken), put, l.waiting, len(l.of))
	}
	for i, message := range taken {
		if message != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, message)
		}
	}
}

// Each message is another one, for example because it quotes a field of an object.
func TestRememberedEventsAreBounded(t *testing.T) {
	run(t, &api{}, func(p *Poster) {
		for i := range 20 * maxSeen {
			p.Post(Event{about, "Warning", "Invalid", fmt.Sprint(i)})
			if i%100 == 0 {
				synctest.Wait()
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.seen.Len() != maxSeen {
			t.Errorf("%d events are remembered, want %d", p.seen.Len(), maxSeen)
		}
	})
}

// A tenant with several namespaces causes more events than can be remembered and posted.
func TestEventsOfManyNamespacesTakeNothingFromOthers(t *testing.T) {
	flood := func(p *Poster) {
		for i := range 2 * wholeBacklog {
			tenant := about
			tenant.Namespace = fmt.Sprint("tenant-", i%8)
			p.Post(Event{tenant, "Warning", "Invalid", fmt.Sprint(i)})
		}
	}
	other := about
	other.Namespace = "other"
	t.Run("repeats are posted once", func(t *testing.T) {
		a := &api{}
		run(t, a, func(p *Poster) {
			for range 10 {
				flood(p)
				synctest.Wait()
				p.Post(Event{other, "Normal", "Made", "of another tenant"})
				synctest.Wait()
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			a.posted = slices.DeleteFunc(a.posted, func(line string) bool { return !strings.HasPrefix(line, "other ") })
			if want := []string{"other Normal Made: of another tenant", "other Normal Made: of another tenant (×9)"}; !slices.Equal(a.posted, want) {
				t.Errorf("got %q, want %q", a.posted, want)
			}
		})
	})
	t.Run("none is lost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := &api{slow: 10 * time.Millisecond}
			p := New(a, Config{Enabled: true, Log: slog.New(slog.DiscardHandler)})
			flood(p)
			for i := range 10 {
				p.Post(Event{other, "Normal", "Made", fmt.Sprint(i)})
			}
			if p.lines.waiting != wholeBacklog || p.lost != wholeBacklog+10 {
				t.Errorf("%d events wait, and %d are lost", p.lines.waiting, p.lost)
			}
			go p.Run(t.Context())
			time.Sleep(10 * time.Second)
			a.mu.Lock()
			defer a.mu.Unlock()
			for i := range 10 {
				if want := fmt.Sprint("other Normal Made: ", i); !slices.Contains(a.posted, want) {
					t.Errorf("not posted: %s", want)
				}
			}
		})
	})
}

// A message may quote a field of an object.
func TestWaitingEventsAreShort(t *testing.T) {
	a := &api{slow: time.Hour}
	run(t, a, func(p *Poster) {
		for i := range 10 {
			p.Post(Event{about, "Warning", "Invalid", fmt.Sprint(i, strings.Repeat("x", 1<<20))})
		}
		synctest.Wait()
		if p.seen.Len() != 10 {
			t.Fatalf("%d events are known, want 10", p.seen.Len())
		}
		p.seen.DeleteFunc(func(e Event, _ *repeated) bool {
			if len(e.Message) > longest {
				t.Errorf("a message of %d bytes is kept", len(e.Message))
			}
			return false
		})
	})
}

// A handler may post the first line of a long text of an object.
func TestEventsDoNotKeepTheTextsTheyArePartsOf(t *testing.T) {
	p := New(nil, Config{Enabled: true, Log: slog.New(slog.DiscardHandler)})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const events, length = 50, 1 << 20
	for i := range events {
		text := strings.Repeat("x", length)
		p.Post(Event{About: object.Identity{UID: strconv.Itoa(i)}, Type: "Normal", Reason: text[:10], Message: text[:20]})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := after.HeapAlloc - min(after.HeapAlloc, before.HeapAlloc); kept > events*length/10 {
		t.Errorf("%d events keep %d bytes", events, kept)
	}
	runtime.KeepAlive(p)
}

func TestLinesAboutLostEventsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		p := New(&api{fail: errors.New("the namespace is being terminated")}, Config{Enabled: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
		for i := range 500 {
			p.Post(Event{about, "Normal", "Made", fmt.Sprint(i)})
		}
		go p.Run(t.Context())
		synctest.Wait()
		if n := strings.Count(log.String(), "\n"); n == 0 || n > 10 {
			t.Errorf("%d lines about 500 lost events", n)
		}
	})
}

func TestPostedAndLostEventsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{}
		posted, dropped := 0, 0
		p := New(a, Config{
			Enabled: true, Log: slog.New(slog.DiscardHandler),
			Posted: func() { posted++ }, Dropped: func(n int) { dropped += n },
		})
		for i := range backlog + 7 {
			p.Post(Event{about, "Normal", "Made", fmt.Sprint(i)})
		}
		if p.seen.Len() > backlog {
			t.Errorf("%d events are remembered, want at most the backlog", p.seen.Len())
		}
		go p.Run(t.Context())
		synctest.Wait()
		a.mu.Lock()
		a.fail = errors.New("no")
		a.mu.Unlock()
		p.Post(Event{about, "Normal", "Made", "in vain"})
		synctest.Wait()
		if posted != backlog || dropped != 8 {
			t.Errorf("%d posted, %d lost; want %d and 8", posted, dropped, backlog)
		}
	})
}

func TestEventsAboutEventsAreNotPosted(t *testing.T) {
	a := &api{}
	run(t, a, func(p *Poster) {
		p.Post(Event{object.Identity{APIVersion: "v1", Kind: "Event", Name: "x"}, "Normal", "Made", ""})
		p.Post(Event{object.Identity{APIVersion: "events.k8s.io/v1", Kind: "Event", Name: "x"}, "Normal", "Made", ""})
		p.Post(Event{object.Identity{APIVersion: "v1", Kind: "Node", Name: "n"}, "Normal", "Made", ""})
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(a.posted, []string{"default Normal Made: "}) {
			t.Errorf("got %q", a.posted)
		}
		p.Post(Event{object.Identity{APIVersion: "example.com/v1", Kind: "Event", Name: "x"}, "Normal", "Made", "another kind of this name"})
		time.Sleep(time.Second)
		synctest.Wait()
		if len(a.posted) != 2 {
			t.Errorf("got %q, want the event about a custom resource, too", a.posted)
		}
	})
}

func TestNothingIsPostedWhenItIsDisabled(t *testing.T) {
	New(&api{}, Config{}).Post(Event{about, "Normal", "Made", ""})
	(*Poster)(nil).Post(Event{about, "Normal", "Made", ""})
}

func TestLongMessagesLoseTheirMiddle(t *testing.T) {
	got := Cut(strings.Repeat("ж", 3000))
	if n := len([]rune(got)); n != 1024 || !strings.Contains(got, "...") {
		t.Errorf("%d characters", n)
	}
}

// Messages may quote an object of megabytes.
func TestCuttingAMessageAllocatesOnlyTheResult(t *testing.T) {
	long := strings.Repeat("aж", 1<<20)
	if n := testing.AllocsPerRun(10, func() { Cut(long) }); n > 1 {
		t.Errorf("%g allocations", n)
	}
	broken := strings.Repeat("\xff", 1025)
	if got := Cut(broken); got != broken[:511]+"..."+broken[:510] {
		t.Errorf("bytes that are not UTF-8: got %q", got)
	}
	if got := Cut(broken[:1024]); len(got) != 1024 {
		t.Errorf("as many bytes as allowed: got %d", len(got))
	}
}

func TestMessagesAreCutByCharactersUnlessTheServerCountsBytes(t *testing.T) {
	wide := strings.Repeat("ж", 255) + "..." + strings.Repeat("ж", 255)
	for name, c := range map[string]struct{ message, characters, bytes string }{
		"short":     {strings.Repeat("a", 1024), strings.Repeat("a", 1024), strings.Repeat("a", 1024)},
		"long":      {strings.Repeat("a", 1000) + strings.Repeat("b", 1000), strings.Repeat("a", 511) + "..." + strings.Repeat("b", 510), strings.Repeat("a", 511) + "..." + strings.Repeat("b", 510)},
		"wide":      {strings.Repeat("ж", 3000), strings.Repeat("ж", 511) + "..." + strings.Repeat("ж", 510), wide},
		"few, wide": {strings.Repeat("ж", 600), strings.Repeat("ж", 600), wide},
		"very wide": {strings.Repeat("😀", 300), strings.Repeat("😀", 300), strings.Repeat("😀", 127) + "..." + strings.Repeat("😀", 127)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, server := range []*api{{}, {bytes: true}} {
				run(t, server, func(p *Poster) {
					for _, about := range []string{"x", "y"} {
						p.Post(Event{object.Identity{Name: about}, "Normal", "Told", c.message})
					}
					synctest.Wait()
					want := c.characters
					if server.bytes {
						want = c.bytes
					}
					if got := server.taken; len(got) != 2 || got[0] != want || got[1] != want {
						t.Errorf("the server, counting bytes: %v, got %q", server.bytes, got)
					}
					if n := len(server.posted); n > 3 {
						t.Errorf("%d requests for two events: the second must be short at once", n)
					}
				})
			}
		})
	}
}

func TestEventsRejectedForOtherReasonsAreNotPostedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		code    int
	}{
		"a narrow one that is invalid": {strings.Repeat("a", 2000), 422},
		"a wide one that is forbidden": {strings.Repeat("ж", 2000), 403},
	} {
		a := &api{fail: &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(c.code)}}}
		run(t, a, func(p *Poster) {
			p.Post(Event{about, "Normal", "Told", c.message})
			synctest.Wait()
			if len(a.posted) != 1 {
				t.Errorf("%s: %d requests", name, len(a.posted))
			}
		})
	}
}
