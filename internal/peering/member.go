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
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/stream"
)

// Config says who we are and where we meet the others. Begin with
// [DefaultConfig]: here zero means zero, not the default.
type Config struct {
	Client *kube.Client
	Place  Place
	Name   string // of the peering object. "default"

	Identity string // unique; see [System.Identity]
	Priority int

	// Lifetime is for how long the others believe that we live after our last
	// renewal. In whole seconds, rounded up; 60 s. Without one, nobody is told
	// of us.
	Lifetime time.Duration

	// Mandatory makes the member pause until it has seen the peering object
	// without anybody to pause for.
	Mandatory bool

	// Stealth keeps renewals out of the log, except those that found no
	// peering object.
	Stealth bool

	// Toggle is told to pause and to go on, and why, whenever one of them
	// changes, from the goroutine of Run. It must not wait for what it sets
	// going: meanwhile nothing is decided.
	Toggle func(paused bool, why string)

	// Stream says how the peering object is followed; what it follows is
	// filled in here.
	Stream stream.Config

	Log *slog.Logger
}

// DefaultConfig has the defaults named at the fields. The rest is to be set.
func DefaultConfig(client *kube.Client, place Place) Config {
	return Config{
		Client: client, Place: place, Name: "default", Lifetime: defaultLifetime,
		Toggle: func(bool, string) {}, Stream: stream.DefaultConfig(place.Info, place.Namespace), Log: slog.Default(),
	}
}

// Member takes part in one peering: it announces us, follows the others, and
// pauses and resumes us.
type Member struct {
	Config
	paused atomic.Bool

	// What follows belongs to the goroutine of judge.
	why    reason            // for the pause
	told   bool              // that there is no object
	noted  map[string]string // unreadable records that were logged
	rivals []string          // of the same priority, that were warned of
	seen   sightings         // the records of others
}

// New makes a member; Run lets it take part.
func New(c Config) *Member {
	m := &Member{Config: c, noted: map[string]string{}, seen: sightings{}}
	if c.Mandatory {
		m.why = waiting
		m.paused.Store(true)
	}
	return m
}

// Paused tells whether we must pause now. It may be asked at any time, also
// before Run: a mandatory member begins so.
func (m *Member) Paused() bool { return m.paused.Load() }

// Run takes part until ctx is done, and then takes our record away, for which
// it has 5 seconds. It does not end before.
func (m *Member) Run(ctx context.Context) {
	if m.why == waiting {
		m.Toggle(true, fmt.Sprintf("the peering object '%s' %s was not seen yet", m.Name, m.Place))
	}
	sights := newLatest[sight]()
	w := newWriter(m.Config)
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { m.follow(ctx, sights) })
	parts.Go(func() { w.run(ctx) })
	m.judge(ctx, sights, w)
}

// sight is what was last seen of the peering object.
type sight struct {
	body *object.Body // nil if it does not exist, or no more
}

// follow reports every state of the peering object.
func (m *Member) follow(ctx context.Context, sights latest[sight]) {
	c := m.Stream
	c.Info, c.Namespace, c.Selector = m.Place.Info, m.Place.Namespace, ""
	c.Log = m.Log
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
		case e.Type != stream.Deleted:
			known = e.Body
			sights.put(sight{body: known})
		case known != nil && known.UID == e.Body.UID:
			known = nil
			sights.put(sight{})
		}
	})
}

// glance is after how long at most it is decided again: the clock may have been
// set, or stood still while the machine slept.
const glance = time.Minute

// judge decides again whenever something is seen, and when the time comes. It
// goes by the last state of an object that is gone: those who are in it may
// live, and cannot tell any more.
func (m *Member) judge(ctx context.Context, sights latest[sight], w *writer) {
	var last *object.Body // as it was when it was there
	var version string    // of the object; "" if it is not there
	timer := time.NewTimer(glance)
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
		case <-timer.C:
		}
		wait := glance
		if last != nil {
			counting, dropped := m.seen.limit(status(last), m.Identity, time.Now())
			for _, id := range dropped {
				m.Log.Warn("A record in the peering object was not renewed for too long and is ignored, whatever its lifetime.",
					append(m.where(), "identity", id, "limit", LongestLifetime)...)
			}
			d := Decide(time.Now(), m.Identity, m.Priority, counting)
			m.act(d)
			w.orders.put(orderOf(d, version))
			if !d.Again.IsZero() {
				wait = min(glance, max(time.Until(d.Again), 0))
			}
		}
		timer.Reset(wait)
	}
}

// status is the part of the object that holds the records.
func status(b *object.Body) map[string]any {
	v, _ := b.Lookup("status")
	status, _ := v.(map[string]any) // anything else holds none
	return status
}

// tellOfObject tells, once, that the peering object does not exist.
func (m *Member) tellOfObject(exists, existed bool) {
	told := m.told
	m.told = !exists
	switch {
	case exists || told:
	case existed:
		m.Log.Warn("The peering object is gone. Those who were in it count until their lifetimes end.", m.where()...)
	case m.Mandatory:
		m.Log.Info("Waiting for the peering object to be created, because the peering is mandatory.", m.where()...)
	default:
		m.Log.Debug("There is no peering object, so nobody can be told of this operator.", m.where()...)
	}
}

// where are the attributes that name the peering object.
func (m *Member) where() []any {
	attrs := []any{"peering", m.Name, "resource", m.Place.Info.String()}
	if m.Place.Namespace != "" {
		attrs = append(attrs, "namespace", m.Place.Namespace)
	}
	return attrs
}

// act makes us pause or go on.
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
		m.toggle(why, "an operator of a higher priority is there: "+d.Higher[0].Identity)
	case same:
		m.Log.Warn(fmt.Sprintf("Pausing all operators, including self: %s", list(d.Same)), m.where()...)
		m.toggle(why, "an operator of the same priority is there: "+d.Same[0].Identity)
	default:
		m.Log.Info("Resuming operations after the pause. Nobody of the same or a higher priority is there.", m.where()...)
		m.toggle(why, "nobody of the same or a higher priority is there")
	}
}

// reason is why we pause.
type reason int

const (
	none    reason = iota // we do not
	higher                // somebody of a higher priority is there
	same                  // somebody of the same priority is there
	waiting               // the peering object was not seen yet
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

// warn tells of operators of the same priority, again when others join them.
// While somebody of a higher priority is there, they all pause anyway.
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

// note tells of records that cannot be read, again when the reason changes.
func (m *Member) note(unreadable map[string]error) {
	for id, err := range unreadable {
		if m.noted[id] != err.Error() {
			m.Log.Warn("A record in the peering object cannot be read and is ignored.", append(m.where(), "identity", id, "error", err)...)
			m.noted[id] = err.Error()
		}
	}
	maps.DeleteFunc(m.noted, func(id string, _ string) bool { return unreadable[id] == nil })
}

// latest is a channel of which only the newest value counts. One goroutine may
// put.
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
