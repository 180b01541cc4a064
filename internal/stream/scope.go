package stream

import (
	"context"
	"iter"
	"sync"
	"time"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// Scope limits a stream of all namespaces to some of them, which may change while the
// stream runs. It is safe for concurrent use, and belongs to one stream.
//
// # Flow
//
//  1. A list of the cluster covers the namespaces that are in the scope when it begins.
//     Objects of other namespaces are dropped.
//  2. A namespace that is added later is listed separately, as soon as the stream
//     watches. Until then, its events are dropped, because the list includes their
//     effects.
//  3. No watch event is delivered during such a list. Afterwards, events that are not
//     newer than the list are dropped. So the receiver gets a list of the namespace and
//     then the events after it, as from a stream of that namespace.
//
// A list of one namespace costs as much as that namespace has objects, however many
// other namespaces and objects there are.
type Scope struct {
	known func(namespace string) iter.Seq[object.Identity]

	mu      sync.Mutex
	areas   map[string]*area
	waiting map[string]*area // those that are not listed
	listing bool             // the whole cluster is being listed, or was not listed yet
	added   chan struct{}    // has an entry if areas may wait for their list
}

// area is a namespace of a scope.
type area struct {
	listed bool   // it is covered by a list
	floor  uint64 // the version of its separate list; 0 means that it had none
}

// NewScope returns a scope with the namespaces. known returns the objects in a namespace
// that the receiver believes to exist; see [Config.Known].
func NewScope(known func(namespace string) iter.Seq[object.Identity], namespaces iter.Seq[string]) *Scope {
	s := &Scope{known: known, areas: map[string]*area{}, waiting: map[string]*area{}, listing: true, added: make(chan struct{}, 1)}
	for name := range namespaces {
		s.Add(name)
	}
	return s
}

// Add adds a namespace. The stream delivers its objects as list items, and then Synced
// with its name. It does nothing if the namespace is in the scope.
func (s *Scope) Add(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.areas[namespace] != nil {
		return
	}
	p := &area{}
	s.areas[namespace], s.waiting[namespace] = p, p
	s.signal()
}

// Remove removes a namespace. An event of it may be delivered at the same moment.
func (s *Scope) Remove(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.areas, namespace)
	delete(s.waiting, namespace)
}

// signal wakes the goroutine that lists added namespaces. The caller must hold s.mu.
func (s *Scope) signal() {
	select {
	case s.added <- struct{}{}:
	default:
	}
}

// admits reports whether an event is delivered. A nil scope admits everything.
// Deletions of a listed namespace always are: some servers send them with the version of
// the last change.
func (s *Scope) admits(t kube.EventType, id object.Identity) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.areas[id.Namespace]
	if p == nil || !p.listed {
		return false
	}
	version, valid := id.Version()
	return t == kube.Deleted || !valid || version > p.floor
}

// filter returns a function that delivers only the events in the scope.
func (s *Scope) filter(deliver func(Event)) func(Event) {
	if s == nil {
		return deliver
	}
	return func(e Event) {
		if e.Body == nil || s.admits(e.Type, e.Body.Identity) {
			deliver(e)
		}
	}
}

// begin is called before a list of the cluster. The list covers all namespaces that are
// in the scope now.
func (s *Scope) begin() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing = true
	clear(s.waiting)
	for _, p := range s.areas {
		*p = area{listed: true}
	}
}

// finish is called after a list of the cluster. It returns the namespaces that the list
// covered. A nil scope returns nil.
func (s *Scope) finish() (covered []string) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing = false
	covered = make([]string, 0, len(s.areas)-len(s.waiting))
	for name, p := range s.areas {
		if p.listed {
			covered = append(covered, name)
		}
	}
	s.signal()
	return covered
}

// next returns a namespace that must be listed now. nil means that there is none.
func (s *Scope) next() (namespace string, p *area) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listing {
		return "", nil
	}
	for name, p := range s.waiting {
		return name, p
	}
	return "", nil
}

// joined records that a namespace was listed. It returns false if the namespace was
// removed meanwhile.
func (s *Scope) joined(namespace string, p *area, version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[namespace] != p {
		return false
	}
	delete(s.waiting, namespace)
	p.listed = true
	p.floor, _ = object.Identity{ResourceVersion: version}.Version()
	return true
}

// joinLimit limits how long the list of an added namespace may be silent, because the
// watch is not read during it.
const joinLimit = 5 * time.Second

// startJoins starts the goroutine that lists added namespaces. The caller must call the
// returned function, which waits for it.
func (r *run) startJoins(ctx context.Context) (stop func()) {
	if r.Scope == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { r.join(ctx) })
	return func() { cancel(); done.Wait() }
}

// join lists namespaces that were added to the scope, until ctx is done.
func (r *run) join(ctx context.Context) {
	client := r.client.Derive(func(o *kube.Options) {
		if o.RequestTimeout <= 0 || o.RequestTimeout > joinLimit {
			o.RequestTimeout = joinLimit
		}
	})
	pause := pauses{Backoff: backoff.Backoff{First: r.ReconnectBackoff, Most: r.MaxBackoff}, jitter: r.jitter}
	for ctx.Err() == nil {
		namespace, p := r.Scope.next()
		if p == nil {
			select {
			case <-r.Scope.added:
			case <-ctx.Done():
			}
			continue
		}
		err := r.listArea(ctx, client, namespace, p)
		if err == nil {
			pause.reset()
			continue
		}
		if ctx.Err() == nil {
			r.Log.Debug("Cannot list a namespace that was added; retrying.", "namespace", namespace, "error", err)
		}
		if backoff.Sleep(ctx, max(pause.next(), kube.RetryAfter(err))) != nil {
			return
		}
	}
}

// listArea lists one namespace. Until it returns, no watch event is delivered.
func (r *run) listArea(ctx context.Context, client *kube.Client, namespace string, p *area) error {
	r.delivering <- struct{}{}
	defer func() { <-r.delivering }()
	list := newListing(func() iter.Seq[object.Identity] { return r.Scope.known(namespace) })
	mark := r.Shared.Mark()
	saw := func(id object.Identity) {
		if former, replaced := list.saw(id); replaced {
			r.admit(r.tombstone(former, mark))
		}
	}
	version, err := client.List(ctx, r.Info, namespace, kube.ListOptions{Selector: r.Selector, Fields: r.Fields, Skipped: saw}, func(b *object.Body) error {
		saw(b.Identity)
		r.admit(Event{Type: kube.Listed, Body: b, Mark: mark})
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	for id := range list.missing() {
		r.admit(r.tombstone(id, mark))
	}
	if r.Scope.joined(namespace, p, version) {
		r.admit(Event{Type: Synced, Namespaces: []string{namespace}})
	}
	return nil
}
