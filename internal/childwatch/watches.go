package childwatch

import (
	"context"
	"iter"
	"log/slog"
	"sync"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// Watch is one watch of children: a kind in a namespace, or in all ("").
type Watch struct {
	Info      kind.Info
	Namespace string
	Foreign   bool // not of children: of all objects of the kind; see [References]
}

// Config configures [Watches].
type Config struct {
	Store  *Store
	Client *kube.Client  // with managedFields
	Stream stream.Config // the resource, the namespace and the selector are filled in
	Label  string        // the value of [Label] on the children of this operator
	Log    *slog.Logger

	// References are the objects that foreign watches are for. Plain is the client of these
	// watches: it needs no managedFields.
	References *References
	Plain      *kube.Client

	// Wake is called when a child of the owner has changed. namespace is that of the child.
	// Its owner may be forged. Wake must not block for long.
	Wake func(owner string, of kind.Info, namespace string)
	// Listed is called when a watch has delivered its first list, or cannot list.
	Listed func(kind.Info)
	// Observe adds a watch to the health of the operator. deliver must be called for
	// each event. May be nil.
	Observe func(*stream.Config) (deliver func(stream.Event, func(stream.Event)), end func())
}

// Watches runs the watches of children. Its methods must not be called concurrently,
// except Complete.
type Watches struct {
	config  Config
	running map[watchID]*running

	mu     sync.Mutex
	listed map[watchID]bool
}

type running struct {
	watch  Watch
	cancel context.CancelFunc
	done   chan struct{}
}

// NewWatches returns watches that are not running; see [Watches.Follow].
func NewWatches(config Config) *Watches {
	return &Watches{config: config, running: map[watchID]*running{}, listed: map[watchID]bool{}}
}

// watchID identifies a watch. Each turn compares several.
type watchID struct {
	group, version, plural, kind, namespace string
	foreign                                 bool
}

func (w Watch) id() watchID {
	return watchID{w.Info.Group, w.Info.Version, w.Info.Plural, w.Info.Kind, w.Namespace, w.Foreign}
}

// Follow starts the missing watches, and ends those that are not wanted. It does not wait
// for the ended ones. The children of ended watches stay in the store until a later list.
func (w *Watches) Follow(ctx context.Context, wanted []Watch) {
	ids := map[watchID]bool{}
	for _, one := range wanted {
		ids[one.id()] = true
	}
	for id, r := range w.running {
		if !ids[id] {
			r.cancel()
			delete(w.running, id)
			w.setListed(id, false)
		}
	}
	for _, one := range wanted {
		if w.running[one.id()] == nil {
			w.running[one.id()] = w.start(ctx, one)
		}
	}
}

// Stop ends all watches and waits for them, and for the goroutine of [References]. No watch may
// be started afterwards.
func (w *Watches) Stop() {
	for id, r := range w.running {
		r.cancel()
		<-r.done
		delete(w.running, id)
		w.setListed(id, false)
	}
	if w.config.References != nil {
		w.config.References.close()
	}
}

// Complete reports whether all the watches have delivered their first lists, or cannot
// list.
func (w *Watches) Complete(wanted []Watch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range wanted {
		if !w.listed[one.id()] {
			return false
		}
	}
	return true
}

func (w *Watches) setListed(id watchID, listed bool) (changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed = w.listed[id] != listed
	if delete(w.listed, id); listed {
		w.listed[id] = true
	}
	return changed
}

func (w *Watches) start(ctx context.Context, of Watch) *running {
	ctx, cancel := context.WithCancel(ctx)
	config := w.config.Stream
	config.Info, config.Namespace, config.Log = of.Info, of.Namespace, w.config.Log
	client := w.config.Client
	config.Selector = Label + "=" + w.config.Label
	config.Known = func() iter.Seq[object.Identity] { return w.config.Store.identities(of.Info, of.Namespace) }
	if of.Foreign {
		client, config.Selector = w.config.Plain, ""
		config.Known = func() iter.Seq[object.Identity] { return w.config.References.identities(of.Info, of.Namespace) }
	}
	deliver, end := func(e stream.Event, to func(stream.Event)) { to(e) }, func() {}
	if w.config.Observe != nil {
		deliver, end = w.config.Observe(&config)
	}
	listed := func() {
		if ctx.Err() == nil && w.setListed(of.id(), true) {
			w.config.Listed(of.Info)
		}
	}
	status := config.Status
	config.Status = func(s stream.Status) {
		if status != nil {
			status(s)
		}
		if _, refused := kube.Refused(s.Err); s.State == stream.Failing && refused {
			listed() // for example without permission: other kinds must not wait for it
		}
	}
	s := stream.New(client, config)
	r := &running{watch: of, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		defer end()
		_ = s.Run(ctx, func(e stream.Event) {
			deliver(e, func(e stream.Event) {
				if e.Type == stream.Synced {
					listed()
					return
				}
				w.deliver(of, e)
			})
		})
	}()
	return r
}

// deliver updates the store and wakes the owners. It must not wait for the work of many owners:
// one watch serves all namespaces.
func (w *Watches) deliver(of Watch, e stream.Event) {
	store, info := w.config.Store, of.Info
	if of.Foreign {
		w.config.References.deliver(info, e)
		return
	}
	if e.Type == kube.Deleted {
		if owner := store.gone(info, e.Body.Identity, e.Mark); owner != "" {
			w.config.Wake(owner, info, e.Body.Namespace)
		}
		return
	}
	if !e.Authoritative && store.At(info, e.Body.Identity) != nil {
		return // from the response to the operator's own write, for example
	}
	c, err := store.Read(info, e.Body)
	if err != nil {
		w.config.Log.Debug("A child cannot be read.", "resource", info.String(), "name", e.Body.String(), "error", err)
		return
	}
	c.mark = e.Mark
	if e.Type == kube.Listed && store.former(c) == nil && !w.Complete([]Watch{of}) {
		store.update(c, e.Authoritative) // the owners wait for the end of this list
		return
	}
	for _, owner := range store.update(c, e.Authoritative) {
		if owner != "" {
			w.config.Wake(owner, info, e.Body.Namespace)
		}
	}
}
