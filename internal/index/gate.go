package index

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Gate is a barrier that opens when all indices are filled. No other handler runs
// before, because it would see incomplete indices.
//
// # Flow
//
//  1. The barrier starts with sources that must be discovered first: the
//     resources and the namespaces.
//  2. A source is expected for every indexed kind in every namespace. Only then
//     is the source that led to it marked as synced.
//  3. A source is synced when everything in its first list is indexed. It is
//     dropped if the kind or the namespace no longer exists. It is also dropped if it is
//     in a namespace that the user did not name, only a pattern, and the API server
//     forbids to list it: a tenant who may create namespaces must not stop the operator.
//  4. When no unsynced source is left, the barrier opens.
//
// # Guarantees
//
// It opens once and stays open, whatever is expected later, unless Close is called
// because the indices are filled again.
//
// # Assumptions
//
// No object's turn waits here: kinds without indices, and the other handlers of indexed
// kinds, are listed after the barrier has opened.
type Gate struct {
	mu      sync.Mutex
	sources map[string]bool // source to synced; nil when the barrier is open
	missing int             // number of unsynced sources
	open    chan struct{}
}

// NewGate returns a barrier that waits for the sources. Without sources it is open.
func NewGate(sources ...string) *Gate {
	g := &Gate{sources: map[string]bool{}, open: make(chan struct{})}
	for _, name := range sources {
		g.Expect(name)
	}
	g.settle()
	return g
}

// Expect makes a closed barrier wait for another source. It does nothing if the source
// is known already, or if the barrier is open.
func (g *Gate) Expect(source string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.sources[source]; g.sources != nil && !known {
		g.sources[source] = false
		g.missing++
	}
}

// Synced marks a source as fully indexed. It may be called repeatedly, and for unknown
// sources.
func (g *Gate) Synced(source string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if synced, known := g.sources[source]; known && !synced {
		g.sources[source] = true
		g.missing--
		g.settle()
	}
}

// Drop removes a source that no longer exists, or that the operator may not list. It reports whether
// the barrier was waiting for it.
func (g *Gate) Drop(source string) (waited bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	synced, known := g.sources[source]
	delete(g.sources, source)
	if waited = known && !synced; waited {
		g.missing--
		g.settle()
	}
	return waited
}

// Close makes the barrier wait for the source and for everything that is expected from
// now on. Sources that were synced before are forgotten.
func (g *Gate) Close(source string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sources == nil {
		g.sources, g.open = map[string]bool{}, make(chan struct{})
	}
	maps.DeleteFunc(g.sources, func(name string, synced bool) bool { return synced || name == source })
	g.sources[source] = false
	g.missing = len(g.sources)
}

// settle opens the barrier if no source is missing.
func (g *Gate) settle() {
	if g.missing == 0 {
		g.sources = nil
		close(g.open)
	}
}

// Open returns a channel that is closed when the barrier opens. After Close, a new call
// returns another channel.
func (g *Gate) Open() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// Waiting returns the names of the unsynced sources, sorted. It is empty if the barrier
// is open.
func (g *Gate) Waiting() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for name, synced := range g.sources {
		if !synced {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Await waits until the barrier is open. Meanwhile it calls tell with the unsynced
// sources at the given interval: a source that cannot be listed must not block
// everything silently. It returns the cause of ctx if that ends first.
func (g *Gate) Await(ctx context.Context, interval time.Duration, tell func(waiting []string)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-g.Open():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
			if waiting := g.Waiting(); len(waiting) > 0 {
				tell(waiting)
			}
		}
	}
}
