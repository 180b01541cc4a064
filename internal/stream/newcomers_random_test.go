package stream

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// world is an API server with objects that are created, changed and deleted. Streamed
// lists are as fast as their reader; some other watches lag behind.
type world struct {
	cuts  float64 // probability that a watch breaks after an event
	pages bool    // it cannot stream lists

	mu      sync.Mutex
	rand    *rand.Rand
	version int
	objects map[string]change // by uid
	history []change
}

type change struct {
	typ       kube.EventType
	name, uid string
	version   int
	when      time.Time
}

func (c change) object() string { return pod(c.name, c.uid, strconv.Itoa(c.version)) }

func (w *world) apply(typ kube.EventType, name, uid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	c := change{typ, name, uid, w.version, time.Now()}
	w.history = append(w.history, c)
	if delete(w.objects, uid); typ != kube.Deleted {
		w.objects[uid] = c
	}
}

// live makes random changes. Names are reused. If returning is set, objects come back
// with the same uid, as if they matched a selector again.
func (w *world) live(dice *rand.Rand, changes int, returning bool) {
	var away []change
	for i := range changes {
		time.Sleep(time.Duration(dice.IntN(20)) * time.Millisecond)
		w.mu.Lock()
		existing := slices.SortedFunc(maps.Values(w.objects), func(a, b change) int { return cmp.Compare(a.uid, b.uid) })
		w.mu.Unlock()
		has := func(name string) bool {
			return slices.ContainsFunc(existing, func(c change) bool { return c.name == name })
		}
		at := existing[dice.IntN(len(existing))]
		if dice.IntN(2) == 0 { // prefer the newest
			at = slices.MaxFunc(existing, func(a, b change) int { return cmp.Compare(a.version, b.version) })
		}
		name := fmt.Sprint("name", dice.IntN(20))
		switch n := dice.IntN(10); {
		case n < 2 && returning && len(away) > 0 && !has(away[0].name):
			w.apply(kube.Added, away[0].name, away[0].uid)
			away = away[1:]
		case n < 4 && !has(name):
			w.apply(kube.Added, name, fmt.Sprint("uid", i))
		case n < 8:
			w.apply(kube.Modified, at.name, at.uid)
		default:
			w.apply(kube.Deleted, at.name, at.uid)
			away = append(away, at)
		}
	}
}

func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	q := req.URL.Query()
	w.mu.Lock()
	defer w.mu.Unlock()
	respond := func(code int, body io.Reader) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{}, Request: req, Body: io.NopCloser(body)}, nil
	}
	var lines []string
	initial := slices.Collect(maps.Values(w.objects))
	w.rand.Shuffle(len(initial), func(i, j int) { initial[i], initial[j] = initial[j], initial[i] })
	switch {
	case q.Get("watch") == "":
		for _, c := range initial {
			lines = append(lines, c.object())
		}
		more := ""
		if q.Get("limit") == "1" {
			lines, more = lines[:1], "more"
		}
		return respond(200, strings.NewReader(fmt.Sprintf(`{"metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`,
			w.version, more, strings.Join(lines, ","))))
	case q.Get("sendInitialEvents") == "true" && w.pages:
		return respond(422, strings.NewReader(`{"kind":"Status","code":422,"reason":"Invalid"}`))
	case q.Get("sendInitialEvents") == "true":
		for _, c := range initial {
			lines = append(lines, event(kube.Added, c.name, c.uid, strconv.Itoa(c.version)).text)
		}
		return respond(200, &watching{world: w, ctx: req.Context(), lines: lines, at: w.version, listing: true})
	}
	from, err := strconv.Atoi(q.Get("resourceVersion"))
	if err != nil {
		return nil, err
	}
	lag := time.Duration(max(0, w.rand.IntN(600)-300)) * time.Millisecond
	return respond(200, &watching{world: w, ctx: req.Context(), at: from, lag: lag})
}

// watching is the body of a watch. Events are sent as they are read.
type watching struct {
	*world
	ctx     context.Context
	lines   []string
	at      int // version of the last change sent
	listing bool
	lag     time.Duration
}

func (w *watching) Read(p []byte) (int, error) {
	for len(w.lines) == 0 {
		if err := w.ctx.Err(); err != nil {
			return 0, err
		}
		if w.next(); len(w.lines) == 0 && backoff.Sleep(w.ctx, 5*time.Millisecond) != nil {
			return 0, w.ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rand.Float64() < w.cuts {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(p, w.lines[0])
	if w.lines[0] = w.lines[0][n:]; w.lines[0] == "" {
		w.lines = w.lines[1:]
	}
	return n, nil
}

func (w *watching) next() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at < w.version && time.Since(w.history[w.at].when) >= w.lag {
		c := w.history[w.at]
		w.lines, w.at = append(w.lines, event(c.typ, c.name, c.uid, strconv.Itoa(c.version)).text), c.version
		return
	}
	if w.listing {
		w.lines, w.listing = append(w.lines, initialEnd(strconv.Itoa(w.at)).text), false
	}
}

// receiver records the events of each object.
type receiver struct {
	mu    sync.Mutex
	rand  *rand.Rand
	told  map[string][]string // by uid
	exist map[string]object.Identity
	early int
}

func (r *receiver) take(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Body == nil {
		return
	}
	uid := e.Body.UID
	what := e.Body.ResourceVersion
	if r.exist[uid] = e.Body.Identity; e.Type == kube.Deleted {
		what += " gone"
		delete(r.exist, uid)
	}
	r.told[uid] = append(r.told[uid], strings.TrimSpace(what))
}

func (r *receiver) known() iter.Seq[object.Identity] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Values(slices.Collect(maps.Values(r.exist)))
}

// follow runs a stream of the world with a slow receiver until there are no more events.
func (w *world) follow(t *testing.T, changes int, returning bool) *receiver {
	r := &receiver{rand: rand.New(rand.NewPCG(1, w.rand.Uint64())), told: map[string][]string{}, exist: map[string]object.Identity{}}
	for i := range 2 * longList {
		w.apply(kube.Added, fmt.Sprint("old", i), fmt.Sprint("old", i))
	}
	client, err := kube.NewClient(&rest.Config{Host: "http://server", Transport: w}, kube.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	config := DefaultConfig(pods, "ns")
	config.Known, config.Log = r.known, slog.New(slog.DiscardHandler)
	config.Newcomers = func(e Event) bool {
		r.mu.Lock()
		taken := r.rand.IntN(20) > 0
		if taken {
			r.early++
		}
		r.mu.Unlock()
		if taken {
			r.take(e)
		}
		return taken
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	dice := rand.New(rand.NewPCG(2, w.rand.Uint64()))
	all.Go(func() { w.live(dice, changes, returning) })
	all.Go(func() {
		_ = New(client, config).Run(ctx, func(e Event) {
			time.Sleep(10 * time.Millisecond)
			r.take(e)
		})
	})
	time.Sleep(time.Minute)
	cancel()
	all.Wait()
	return r
}

func seeds(t *testing.T, n uint64, test func(t *testing.T, w *world)) {
	for seed := range n {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, &world{rand: rand.New(rand.NewPCG(0, seed)), pages: seed%2 == 1, objects: map[string]change{}})
			})
		})
	}
}

// An unbroken stream delivers everything once and in order, by either watch.
func TestNewcomersAreDeliveredOnceAndInOrder(t *testing.T) {
	early := 0
	seeds(t, 40, func(t *testing.T, w *world) {
		r := w.follow(t, 150, false)
		want := map[string][]string{}
		for _, c := range w.history {
			what := strconv.Itoa(c.version)
			if c.typ == kube.Deleted {
				what += " gone"
			}
			want[c.uid] = append(want[c.uid], what)
		}
		if diff := gocmp.Diff(want, r.told); diff != "" {
			t.Errorf("-happened +delivered\n%s", diff)
		}
		early += r.early
	})
	if early < 500 {
		t.Errorf("only %d events were delivered ahead of their lists", early)
	}
}

// Whatever breaks, no event is delivered twice by the two watches, no event is older
// than an earlier one, and at the end all objects are known.
func TestBrokenStreamsLoseNoNewcomers(t *testing.T) {
	early := 0
	seeds(t, 40, func(t *testing.T, w *world) {
		w.cuts = 0.005
		r := w.follow(t, 300, true)
		got, want := map[string]string{}, map[string]string{}
		for uid, id := range r.exist {
			got[uid] = id.ResourceVersion
		}
		for uid, c := range w.objects {
			want[uid] = strconv.Itoa(c.version)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("-exist +known\n%s", diff)
		}
		for uid, told := range r.told {
			last := 0
			for _, what := range told {
				v, _ := strconv.Atoi(strings.TrimSuffix(what, " gone"))
				if v > 0 && v < last {
					t.Errorf("%s: %v is not in order", uid, told)
				}
				last = max(last, v)
			}
		}
		early += r.early
	})
	if early < 500 {
		t.Errorf("only %d events were delivered ahead of their lists", early)
	}
}
