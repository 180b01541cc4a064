package observe

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// Following follows which namespaces of the cluster match patterns.
//
// # Guarantees
//
// A namespace is told from when it is first seen until it is gone, also while
// it is being deleted: its deletion waits for the finalizers of what is in it.
// One that vanished while nobody was watching is noticed. When namespaces may
// not be listed, those given by plain names are told, and all others as soon
// as it is allowed; when it is forbidden later on, what was told stays.
type Following struct {
	Client   *kube.Client
	Stream   stream.Config // how to follow; what is filled in here
	Patterns Namespaces
	Log      *slog.Logger

	// Serve is told which namespaces are to be served, and which not any more.
	Serve func(namespace string, exists bool)

	// Complete is called when all namespaces that exist were told, or cannot be
	// for now. It may be called many times.
	Complete func()

	mu        sync.Mutex
	known     map[string]*known
	farewells *alarm.Clock[string]
	listed    bool // at least once
	refused   bool // and told
}

// known is a namespace that is being served.
type known struct {
	uid     string // "" if it was never seen
	leaving bool
}

// farewell is how long a namespace that is gone is served still: the deletion
// of the last objects in it is told by other streams, which may be behind.
const farewell = 5 * time.Second

// NamespaceInfo is the kind of namespaces, which all clusters have.
func NamespaceInfo() kind.Info { return namespaces }

var namespaces = kind.Info{Version: "v1", Plural: "namespaces", Kind: "Namespace"}

// Run follows until the context is done.
func (f *Following) Run(ctx context.Context) {
	f.known = map[string]*known{}
	f.farewells = alarm.New(f.part)
	var done sync.WaitGroup
	defer done.Wait()
	done.Go(func() { f.farewells.Run(ctx) })

	config := f.Stream
	config.Info, config.Namespace, config.Log = namespaces, "", f.Log
	config.Known, config.Status = f.identities, f.observe
	_ = stream.New(f.Client, config).Run(ctx, f.take)
}

// take takes an event of the stream.
func (f *Following) take(e stream.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Type == stream.Synced {
		f.listed, f.refused = true, false
		f.Complete()
		return
	}
	if !f.Patterns.Match(e.Body.Name) {
		return
	}
	verdict := JudgeNamespace(e)
	for _, b := range verdict.Blockers {
		f.Log.Debug("The deletion of the namespace waits.", "namespace", e.Body.Name, "reason", b.Reason, "message", b.Message)
	}
	if verdict.Served {
		f.meet(e.Body.Name, e.Body.UID)
	} else {
		f.leave(e.Body.Name, e.Body.UID)
	}
}

// meet begins to serve a namespace, or goes on with it if it has come back.
func (f *Following) meet(name, uid string) {
	k := f.known[name]
	if k == nil {
		f.known[name] = &known{uid: uid}
		f.Serve(name, true)
		return
	}
	if k.leaving {
		k.leaving = false
		f.farewells.Cancel(name)
	}
	k.uid = uid
}

// leave makes the namespace part soon, if it is this one that is gone and not
// a former one of the same name.
func (f *Following) leave(name, uid string) {
	if k := f.known[name]; k != nil && !k.leaving && (k.uid == uid || k.uid == "") {
		k.leaving = true
		f.farewells.Set(name, time.Now().Add(farewell))
	}
}

// part ends to serve a namespace, unless it has come back.
func (f *Following) part(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.known[name]; k != nil && k.leaving {
		delete(f.known, name)
		f.Serve(name, false)
	}
}

// observe makes do with plain names where namespaces may not be listed.
func (f *Following) observe(s stream.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !apierrors.IsForbidden(s.Err) || f.listed || f.refused {
		return
	}
	f.refused = true
	f.Log.Warn("Namespaces may not be listed, so that patterns cannot be matched: only those given by plain names are served. Allow the operator to list and watch namespaces, or name them.")
	for _, name := range f.Patterns.Plain() {
		f.meet(name, "")
	}
	f.Complete()
}

// identities are the namespaces that are believed to exist.
func (f *Following) identities() iter.Seq[object.Identity] {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []object.Identity
	for name, k := range f.known {
		if k.uid != "" && !k.leaving {
			all = append(all, object.Identity{Name: name, UID: k.uid})
		}
	}
	return func(yield func(object.Identity) bool) {
		for _, id := range all {
			if !yield(id) {
				return
			}
		}
	}
}
