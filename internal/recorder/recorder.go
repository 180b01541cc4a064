// Package recorder posts Kubernetes events about objects: in the background, in order,
// and without ever delaying the callers.
package recorder

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
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/terminal"
	"gopf.dev/gopf/kind"
)

// Config configures a [Poster].
type Config struct {
	Enabled    bool
	Loggers    bool       // also post log records about objects
	Level      slog.Level // minimum level of log records, and of events that handlers post by level
	Component  string     // name of the operator in events
	Instance   string     // identity of the process
	NamePrefix string     // of the names of events
	Namespace  string     // for events about cluster-scoped objects; empty means "default"
	Log        *slog.Logger

	// Posted is called for each posted event, Dropped with the number of lost events.
	// They must not block. May be nil.
	Posted  func()
	Dropped func(n int)
}

// Event is a Kubernetes event about an object.
type Event struct {
	About   object.Identity
	Type    string // "Normal", "Warning", or any other; at most 63 bytes are posted
	Reason  string // one word; at most 128 bytes are posted
	Message string // at most 1,024 characters are posted, without the middle of longer ones
}

const (
	// repeats is the time during which equal events are posted as one.
	repeats = time.Minute
	// maxSeen limits the remembered events. Repeats of others are posted one by one.
	// Namespaces share it: events of one do not keep those of others from being remembered.
	maxSeen = 4000
)

// Creator is the part of the API client that is needed.
type Creator interface {
	Create(ctx context.Context, t kube.Target, body []byte, params ...kube.Param) (*object.Body, error)
}

// Poster posts events. Its methods are safe for concurrent use. A nil *Poster posts
// nothing.
type Poster struct {
	config Config
	api    Creator
	wake   chan struct{} // events are waiting
	short  bool          // the API server counts the bytes of messages; only Run uses it

	limiter loglimit.Limiter

	mu    sync.Mutex
	lines lines
	lost  int
	seen  loglimit.Shares[Event, *repeated]
}

// repeated is a recently posted event.
type repeated struct {
	since time.Time
	more  int // repeats since then
}

// New returns a poster. Run starts it.
func New(api Creator, c Config) *Poster {
	return &Poster{config: c, api: api, wake: make(chan struct{}, 1), seen: loglimit.Shares[Event, *repeated]{Limit: maxSeen}}
}

// Post queues a Kubernetes event. It does not block. Repeats within a minute are posted
// once, with their number, when the minute is over.
//
// Events about Event objects are never posted: each would cause another one.
func (p *Poster) Post(e Event) {
	if p == nil || !p.config.Enabled || isEvent(e.About) {
		return
	}
	e.About.ResourceVersion, e.About.Deleting = "", false
	e = e.cut() // texts may quote objects, and they are kept for a minute
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, ok := p.seen.Get(e.About.Namespace, e); ok && time.Since(r.since) < repeats {
		r.more++
		return
	}
	if e = e.copied(); p.put(e) {
		p.seen.Put(e.About.Namespace, e, &repeated{since: time.Now()}, p.conclude)
	}
}

// conclude posts a repeated event with its number. The caller must hold p.mu.
func (p *Poster) conclude(e Event, r *repeated) {
	if r.more > 0 {
		e.Message = fmt.Sprintf("%s (×%d)", e.Message, r.more)
		p.put(e)
	}
}

// isEvent reports whether the object is a Kubernetes event. The API server serves each
// of them in two groups: an event created in one appears in the other.
func isEvent(i object.Identity) bool {
	return i.Kind == "Event" && (i.APIVersion == "v1" || strings.HasPrefix(i.APIVersion, "events.k8s.io/"))
}

// put queues an event and reports whether there was room. The caller must hold p.mu.
func (p *Poster) put(e Event) bool {
	queued, displaced := p.lines.put(e)
	if !queued || displaced {
		p.lost++
		p.dropped()
	}
	if !queued {
		return false
	}
	select {
	case p.wake <- struct{}{}:
	default: // Run is about to look
	}
	return true
}

// next removes and returns the next event. ok is false if there is none.
func (p *Poster) next() (e Event, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines.take()
}

func (p *Poster) dropped() {
	if p.config.Dropped != nil {
		p.config.Dropped(1)
	}
}

// Run posts events until ctx ends. Events that wait then are lost.
func (p *Poster) Run(ctx context.Context) {
	tidy := time.NewTicker(repeats)
	defer tidy.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
			p.sendAll(ctx, tidy.C)
		case <-tidy.C:
			p.tidy()
		}
	}
}

// sendAll posts the waiting events.
func (p *Poster) sendAll(ctx context.Context, tidy <-chan time.Time) {
	for ctx.Err() == nil {
		e, ok := p.next()
		if !ok {
			return
		}
		p.send(ctx, e)
		select {
		case <-tidy:
			p.tidy()
		default:
		}
	}
}

// tidy posts repeated events with their number, and logs the number of lost ones.
func (p *Poster) tidy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen.DeleteFunc(func(e Event, r *repeated) bool {
		if time.Since(r.since) < repeats {
			return false
		}
		p.conclude(e, r)
		return true
	})
	if p.lost > 0 {
		p.config.Log.Warn("Kubernetes events were lost because they could not be posted fast enough.", "lost", p.lost)
		p.lost = 0
	}
}

// send posts one event. API servers document a limit of 1,024 characters for a message,
// but current versions count bytes. If the server rejects a message for that reason,
// send posts it again with fewer characters and shortens all later messages.
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
		p.complain(e, err)
	}
}

// complain logs the loss of an event. Tenants can cause many losses, for example by deleting
// a namespace with many objects, so the lines are rate-limited.
func (p *Poster) complain(e Event, err error) {
	ok, suppressed := p.limiter.Allow("lost")
	if !ok {
		return
	}
	attrs := []any{"about", e.About.String(), "reason", e.Reason, "error", err}
	if suppressed > 0 {
		attrs = append(attrs, "suppressed", suppressed)
	}
	p.config.Log.Warn("A Kubernetes event could not be posted and was lost.", attrs...)
}

// create makes one request. If short, the message has at most 1,024 bytes.
func (p *Poster) create(ctx context.Context, e Event, short bool) error {
	body := p.config.Body(e, time.Now())
	if short {
		body["message"] = terminal.CutMiddle(Cut(e.Message), longest) // ASCII messages stay as they are
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
