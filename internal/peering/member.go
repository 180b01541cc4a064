package peering

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/stream"
)

// Config configures a [Member]. Start with [DefaultConfig]: a zero field means zero,
// not the default.
type Config struct {
	Client *kube.Client
	Place  Place
	Name   string // of the peering object. Default: "default".

	Identity string // unique; see [System.Identity]
	Priority int

	// Lifetime is the time after our last renewal during which other operators consider
	// us alive. It is rounded up to whole seconds. Default: 60s. 0 means that no record
	// is written.
	Lifetime time.Duration

	// Mandatory makes the member pause until it has seen the peering object and no
	// reason to pause.
	Mandatory bool

	// Join makes a mandatory member wait without a pause of this operator, because the
	// caller does not serve the namespace until Join(true). Join(true) is called once, when
	// the member has seen the peering object, after Toggle if it must pause. Join(false) is
	// called before that if the object does not exist or the API server forbids to list it.
	// The calls may come from several goroutines. nil means that waiting is a pause.
	Join func(found bool)

	// Stealth keeps successful renewals out of the log.
	Stealth bool

	// Toggle is called when the member pauses or resumes, or when the reason for the
	// pause changes, from the goroutine of Run. No decisions are made while it runs, so
	// it must not wait for the effects.
	Toggle func(paused bool, why string)

	// Stream configures the watch of the peering object. The resource and the namespace
	// are set here.
	Stream stream.Config

	Log *slog.Logger
}

// DefaultConfig returns the defaults that are documented at the fields. The caller must
// set the rest.
func DefaultConfig(client *kube.Client, place Place) Config {
	return Config{
		Client: client, Place: place, Name: "default", Lifetime: defaultLifetime,
		Toggle: func(bool, string) {}, Stream: stream.DefaultConfig(place.Info, place.Namespace), Log: slog.Default(),
	}
}

// Member takes part in one peering: it writes our record, watches the others, and
// pauses and resumes this operator.
type Member struct {
	Config
	paused atomic.Bool
	joined atomic.Bool // the object was seen, and Join(true) is called at once

	// The fields below belong to the goroutine of judge.
	why    reason            // for the pause
	told   bool              // it was logged that there is no object
	noted  map[string]string // unreadable records that were seen, with their errors
	lines  loglimit.Limiter  // of lines about them
	rivals []string          // with the same priority, already logged
	seen   sightings         // records of others
}

// New returns a member. Run starts it.
func New(c Config) *Member {
	m := &Member{Config: c, noted: map[string]string{}, seen: sightings{}}
	if c.Mandatory && c.Join == nil {
		m.why = waiting
		m.paused.Store(true)
	}
	return m
}

// Paused reports whether this operator must pause now. It is safe for concurrent use,
// even before Run: a mandatory member without Join starts paused.
func (m *Member) Paused() bool { return m.paused.Load() }

// Run takes part until ctx ends. Then it removes our record, which may take up to 5
// seconds, and returns.
func (m *Member) Run(ctx context.Context) {
	if m.why == waiting {
		m.Toggle(true, fmt.Sprintf("the peering object '%s' %s has not been seen yet", m.Name, m.Place))
	}
	sights := newLatest[sight]()
	w := newWriter(m.Config)
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { m.follow(ctx, sights) })
	parts.Go(func() { w.run(ctx) })
	m.judge(ctx, sights, w)
}

// sight is the last known state of the peering object.
type sight struct {
	body *object.Body // nil means that it does not exist
}

// follow sends every state of the peering object to sights.
func (m *Member) follow(ctx context.Context, sights latest[sight]) {
	c := m.Stream
	c.Info, c.Namespace, c.Selector = m.Place.Info, m.Place.Namespace, ""
	c.Log = m.Log
	if m.Join != nil {
		defer c.OnRefusal(m.refused)()
	}
	var known *object.Body
	c.Known = func() iter.Seq[object.Identity] {
		return func(yield func(object.Identity) bool) {
			if known != nil {
				yield(known.Identity)
			}
		}
	}
	_ = stream.New(m.Client, c).Run(ctx, func(e stream.Event) {
		switch {
		case e.Type == stream.Synced:
			if known == nil {
				sights.put(sight{})
			}
		case e.Body.Name != m.Name:
			// The peering of other operators.
		case e.Type != kube.Deleted:
			known = e.Body
			sights.put(sight{body: known})
		case known != nil && known.UID == e.Body.UID:
			known = nil
			sights.put(sight{})
		}
	})
}

// refused notes that the API server forbids to list the peering objects of the namespace. It
// does nothing if the object was seen before.
func (m *Member) refused() {
	if m.joined.Load() {
		return
	}
	m.Log.Warn("The namespace is not served, because the peering is mandatory, and the operator may not list the peering objects of the namespace. "+
		"Grant the permission, or exclude the namespace.", m.where()...)
	m.Join(false)
}

// maxDecisionInterval is the maximum time between two decisions: the clock may have been set, or may
// have stopped while the machine was asleep.
const maxDecisionInterval = time.Minute

// judge decides again for every state of the peering object, and when a record expires.
// If the object was deleted, it uses the last state: the operators in it may be alive
// but can no longer renew their records.
func (m *Member) judge(ctx context.Context, sights latest[sight], w *writer) {
	var last *object.Body // the last existing state
	var version string    // empty if the object does not exist
	timer := time.NewTimer(maxDecisionInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-sights:
			if version = ""; s.body != nil {
				last, version = s.body, s.body.ResourceVersion
			}
			m.tellOfObject(s.body != nil, last != nil)
			if last == nil && m.Join != nil {
				m.Join(false)
			}
		case <-timer.C:
		}
		wait := maxDecisionInterval
		if last != nil {
			counting, dropped := m.seen.limit(status(last), m.Identity, time.Now())
			for _, id := range dropped {
				m.Log.Warn("Ignoring a record in the peering object that was not renewed for too long, whatever its lifetime.",
					append(m.where(), "identity", id, "limit", LongestLifetime)...)
			}
			d := Decide(time.Now(), m.Identity, m.Priority, counting)
			m.act(d)
			if m.Join != nil && m.joined.CompareAndSwap(false, true) {
				m.Join(true)
			}
			w.orders.put(orderOf(d, version))
			if !d.Again.IsZero() {
				wait = min(maxDecisionInterval, max(time.Until(d.Again), 0))
			}
		}
		timer.Reset(wait)
	}
}

// status returns the records of the object.
func status(b *object.Body) map[string]any {
	v, _ := b.Lookup("status")
	status, _ := v.(map[string]any) // other types contain no records
	return status
}

// tellOfObject logs, once, that the peering object does not exist, and that a namespace is
// served after that.
func (m *Member) tellOfObject(exists, existed bool) {
	told := m.told
	m.told = !exists
	switch {
	case exists && told && m.Join != nil && !m.joined.Load():
		m.Log.Info("The peering object exists, so the namespace is served now.", m.where()...)
	case exists || told:
	case existed:
		m.Log.Warn("The peering object is gone. The operators in it count as alive until their lifetimes end.", m.where()...)
	case m.Join != nil:
		m.Log.Warn("The namespace is not served, because the peering is mandatory, and the namespace has no peering object. "+
			"Create the object, or exclude the namespace.", m.where()...)
	case m.Mandatory:
		m.Log.Info("Waiting for the peering object to be created, because the peering is mandatory.", m.where()...)
	default:
		m.Log.Debug("There is no peering object, so other operators are not notified of this one.", m.where()...)
	}
}

// where returns log attributes that identify the peering object.
func (m *Member) where() []any {
	attrs := []any{"peering", m.Name, "resource", m.Place.Info.String()}
	if m.Place.Namespace != "" {
		attrs = append(attrs, "namespace", m.Place.Namespace)
	}
	return attrs
}

// act pauses or resumes this operator.
func (m *Member) act(d Decision) {
	m.note(d.Unreadable)
	m.warn(d)
	why := reasonOf(d)
	if why == m.why {
		return
	}
	switch why {
	case higher:
		m.Log.Info(fmt.Sprintf("Pausing operations in favour of %s.", list(d.Higher)), m.where()...)
		m.toggle(why, "an operator with a higher priority is running: "+d.Higher[0].Identity)
	case same:
		m.Log.Warn(fmt.Sprintf("Pausing all operators, including self: %s", list(d.Same)), m.where()...)
		m.toggle(why, "an operator with the same priority is running: "+d.Same[0].Identity)
	default:
		m.Log.Info("Resuming operations after the pause. No operator with the same or a higher priority is running.", m.where()...)
		m.toggle(why, "no operator with the same or a higher priority is running")
	}
}

// reason is the reason for the pause.
type reason int

const (
	none    reason = iota // not paused
	higher                // an operator with a higher priority is alive
	same                  // an operator with the same priority is alive
	waiting               // the peering object has not been seen yet
)

func reasonOf(d Decision) reason {
	switch {
	case len(d.Higher) > 0:
		return higher
	case len(d.Same) > 0:
		return same
	}
	return none
}

func (m *Member) toggle(why reason, text string) {
	m.why = why
	m.paused.Store(why != none)
	m.Toggle(why != none, text)
}

// warn logs operators with the same priority, and again when others join them. While an
// operator with a higher priority is alive, they all pause anyway.
func (m *Member) warn(d Decision) {
	var rivals []string
	if len(d.Higher) == 0 {
		for _, r := range d.Same {
			rivals = append(rivals, r.Identity)
		}
	}
	isNew := func(id string) bool { return !slices.Contains(m.rivals, id) }
	if slices.ContainsFunc(rivals, isNew) {
		m.Log.Warn(fmt.Sprintf("Possibly conflicting operators with the same priority: %s. All of them are paused: "+
			"give one of them another --priority, or stop the others.", list(d.Same)), append(m.where(), "priority", m.Priority)...)
	}
	m.rivals = rivals
}

// note logs unreadable records, and again when the reason changes. Any client that may
// write the peering object can cause such lines, so they are rate-limited.
func (m *Member) note(unreadable map[string]error) {
	for id, err := range unreadable {
		reason := loglimit.Cut(err.Error())
		if m.noted[id] == reason {
			continue
		}
		m.noted[id] = reason
		if ok, suppressed := m.lines.Allow("unreadable"); ok {
			m.Log.Warn("A record in the peering object cannot be read and is ignored.",
				append(m.where(), "identity", loglimit.Cut(id), "error", reason, "suppressed", suppressed)...)
		}
	}
	maps.DeleteFunc(m.noted, func(id string, _ string) bool { return unreadable[id] == nil })
}

// latest is a channel that keeps only the newest value. Only one goroutine may call put.
type latest[T any] chan T

func newLatest[T any]() latest[T] { return make(latest[T], 1) }

func (l latest[T]) put(v T) {
	select {
	case <-l:
	default:
	}
	l <- v
}

func target(p Place, name string) kube.Target {
	t := kube.Target{Info: p.Info, Namespace: p.Namespace, Name: name}
	if p.Info.HasStatus() {
		t.Subresource = "status"
	}
	return t
}
