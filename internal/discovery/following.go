package discovery

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

// Following tracks the namespaces of the cluster that match patterns.
//
// # Guarantees
//
// A namespace is reported from when it is first seen until it is gone. The namespaces of
// the first list are reported together, when the list is complete. A namespace counts as
// existing while it is being deleted, because its deletion waits for the finalizers of
// its objects. Deletions that the watch missed are detected. If listing namespaces is
// forbidden, namespaces given by plain names are reported; the others follow as soon as
// listing is allowed. If listing is forbidden later, the reported namespaces stay.
type Following struct {
	Client   *kube.Client
	Stream   stream.Config // how to watch; the resource and the callbacks are set here
	Patterns Namespaces
	Log      *slog.Logger

	// Serve is called when namespaces must be served, and when they no longer must. It
	// is called once for all namespaces of the first list.
	Serve func(namespaces []string, exist bool)

	// Seen is called with each state of a namespace that must be served, before Serve. May
	// be nil.
	Seen func(*object.Body)

	// Complete is called when all existing namespaces were reported, or cannot be
	// listed for now. It may be called many times.
	Complete func()

	mu         sync.Mutex
	known      map[string]*known
	departures *alarm.Clock[string]
	listed     bool     // at least once
	found      []string // namespaces of the first list, until it is complete
	refused    bool     // listing is forbidden, and that was logged
}

// known is a namespace that is being served.
type known struct {
	uid     string // empty if it was never seen
	leaving bool
}

// leaveDelay is the time during which a deleted namespace is still served. The deletion
// of its last objects comes from other streams, which may be behind.
const leaveDelay = 5 * time.Second

// NamespaceInfo returns the resource of namespaces, which every cluster has.
func NamespaceInfo() kind.Info { return namespaces }

var namespaces = kind.Info{Version: "v1", Plural: "namespaces", Kind: "Namespace"}

// Run tracks namespaces until ctx is done.
func (f *Following) Run(ctx context.Context) {
	f.known = map[string]*known{}
	f.departures = alarm.New(f.part)
	var done sync.WaitGroup
	defer done.Wait()
	done.Go(func() { f.departures.Run(ctx) })

	config := f.Stream
	config.Info, config.Namespace, config.Log = namespaces, "", f.Log
	config.Known, config.Status = f.identities, f.observe
	_ = stream.New(f.Client, config).Run(ctx, f.take)
}

// take handles an event of the stream.
func (f *Following) take(e stream.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Type == stream.Synced {
		f.listed, f.refused = true, false
		f.complete()
		return
	}
	if !f.Patterns.Match(e.Body.Name) {
		return
	}
	verdict := JudgeNamespace(e)
	for _, b := range verdict.Blockers {
		f.Log.Debug("The deletion of the namespace is blocked.", "namespace", e.Body.Name, "reason", b.Reason, "message", b.Message)
	}
	if verdict.Served {
		if f.Seen != nil {
			f.Seen(e.Body)
		}
		f.meet(e.Body.Name, e.Body.UID)
	} else {
		f.leave(e.Body.Name, e.Body.UID)
	}
}

// meet starts to serve a namespace, or continues to if it was created again.
func (f *Following) meet(name, uid string) {
	k := f.known[name]
	if k == nil {
		f.known[name] = &known{uid: uid}
		if f.listed {
			f.Serve([]string{name}, true)
		} else {
			f.found = append(f.found, name)
		}
		return
	}
	if k.leaving {
		k.leaving = false
		f.departures.Cancel(name)
	}
	k.uid = uid
}

// leave schedules the end of serving a namespace. It ignores the deletion of an earlier
// namespace of the same name.
func (f *Following) leave(name, uid string) {
	if k := f.known[name]; k != nil && !k.leaving && (k.uid == uid || k.uid == "") {
		k.leaving = true
		f.departures.Set(name, time.Now().Add(leaveDelay))
	}
}

// part stops serving a namespace, unless it was created again.
func (f *Following) part(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.known[name]; k != nil && k.leaving {
		delete(f.known, name)
		f.Serve([]string{name}, false)
	}
}

// observe falls back to plain names if listing namespaces is forbidden.
func (f *Following) observe(s stream.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !apierrors.IsForbidden(s.Err) || f.listed || f.refused {
		return
	}
	f.refused = true
	f.Log.Warn("The operator may not list namespaces, so patterns cannot be matched; only namespaces given by plain names are served. Allow the operator to list and watch namespaces, or give plain names.")
	for _, name := range f.Patterns.Plain() {
		f.meet(name, "")
	}
	f.complete()
}

// complete reports the namespaces of the first list, and that all were reported.
func (f *Following) complete() {
	if len(f.found) > 0 {
		f.Serve(f.found, true)
		f.found = nil
	}
	f.Complete()
}

// identities returns the namespaces that are believed to exist.
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
