// Package posting posts Kubernetes events about objects: in the background, in
// order, and never at the cost of anything else.
package posting

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// Config says who posts.
type Config struct {
	Enabled    bool
	Loggers    bool       // log lines about objects are posted, too
	Level      slog.Level // the least of them, and of what handlers tell by level
	Component  string     // the operator, as events tell it
	Instance   string     // which of its processes
	NamePrefix string     // of the events' own names
	Namespace  string     // for events about cluster-scoped objects; "" is "default"
	Log        *slog.Logger

	// Posted and Dropped, if set, are told of events that were posted, and of how
	// many are lost. They must be quick.
	Posted  func()
	Dropped func(n int)
}

// Event is something to be told about an object.
type Event struct {
	About   object.Identity
	Type    string // "Normal", "Warning", or whatever
	Reason  string // one word
	Message string
}

// backlog is how many events may wait to be posted. Beyond that they are lost,
// and it is told how many.
const backlog = 1000

// repeats is for how long equal events are posted as one.
const repeats = time.Minute

// Creator is the part of the cluster's API that is needed.
type Creator interface {
	Create(ctx context.Context, t kube.Target, body []byte, params ...kube.Param) (*object.Body, error)
}

// Poster posts events. Its methods may be called from anywhere.
type Poster struct {
	config Config
	api    Creator
	queue  chan Event
	short  bool // the API server counts the bytes of messages; only Run uses it

	mu   sync.Mutex
	lost int
	seen map[Event]*repeated
}

// repeated is an event that was posted lately.
type repeated struct {
	since time.Time
	more  int // how many times it came since
}

// New makes a poster; Run makes it post.
func New(api Creator, c Config) *Poster {
	return &Poster{config: c, api: api, queue: make(chan Event, backlog), seen: map[Event]*repeated{}}
}

// Post queues a Kubernetes event. It does not wait. Repeats within a minute are
// posted once, with their number, when the minute is over.
//
// Events about Event objects are never posted: each would cause the next one.
func (p *Poster) Post(e Event) {
	if p == nil || !p.config.Enabled || isEvent(e.About) {
		return
	}
	e.About.ResourceVersion, e.About.Deleting = "", false
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.seen[e]; r != nil && time.Since(r.since) < repeats {
		r.more++
		return
	}
	if p.put(e) { // so that what is remembered is bounded, too
		p.seen[e] = &repeated{since: time.Now()}
	}
}

// isEvent reports whether the object is a Kubernetes event. The API server has
// each of them in two groups: an event created in one appears in the other.
func isEvent(i object.Identity) bool {
	return i.Kind == "Event" && (i.APIVersion == "v1" || strings.HasPrefix(i.APIVersion, "events.k8s.io/"))
}

// put has an event posted, if there is room.
func (p *Poster) put(e Event) bool {
	select {
	case p.queue <- e:
		return true
	default:
		p.lost++
		p.dropped()
		return false
	}
}

func (p *Poster) dropped() {
	if p.config.Dropped != nil {
		p.config.Dropped(1)
	}
}

// Run posts events until the context is done; what waits then is lost.
func (p *Poster) Run(ctx context.Context) {
	tidy := time.NewTicker(repeats)
	defer tidy.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-p.queue:
			p.send(ctx, e)
		case <-tidy.C:
			p.tidy()
		}
	}
}

// tidy tells repetitions by their number, and losses by theirs.
func (p *Poster) tidy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e, r := range p.seen {
		if time.Since(r.since) < repeats {
			continue
		}
		delete(p.seen, e)
		if r.more > 0 {
			e.Message = fmt.Sprintf("%s (×%d)", e.Message, r.more)
			p.put(e)
		}
	}
	if p.lost > 0 {
		p.config.Log.Warn("There are more events to be posted than the cluster takes: some are lost.", "lost", p.lost)
		p.lost = 0
	}
}

// send posts one event. API servers promise 1,024 characters for a message, but
// those of today count bytes. So a wide message that is refused is posted again
// with fewer characters, and the ones after it are shortened at once.
func (p *Poster) send(ctx context.Context, e Event) {
	wide := len(Cut(e.Message)) > longest
	err := p.create(ctx, e, p.short)
	if refused, _ := kube.Refused(err); wide && !p.short && refused.Code == http.StatusUnprocessableEntity {
		if err = p.create(ctx, e, true); err == nil {
			p.short = true
		}
	}
	switch {
	case err == nil:
		if p.config.Posted != nil {
			p.config.Posted()
		}
	case ctx.Err() == nil:
		p.dropped()
		p.config.Log.Warn("An event cannot be posted and is lost.", "about", e.About.String(), "reason", e.Reason, "error", err)
	}
}

// create makes one request. If short, the message has at most 1,024 bytes.
func (p *Poster) create(ctx context.Context, e Event, short bool) error {
	body := p.config.Body(e, time.Now())
	if short {
		body["message"] = fit(Cut(e.Message))
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = p.api.Create(ctx, kube.Target{
		Info:      kind.Info{Version: "v1", Plural: "events", Kind: "Event", Namespaced: true},
		Namespace: body["metadata"].(map[string]any)["namespace"].(string),
	}, raw)
	return err
}
