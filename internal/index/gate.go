package index

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Gate tells when all indices are filled. No other handler runs before, so that
// none sees a part of what exists.
//
// # Flow
//
//  1. The gate is made with all that is to be found out first: which resources
//     there are, which namespaces.
//  2. A source is expected for every indexed kind in every namespace, and only
//     then what told of them is synced.
//  3. A source is synced when everything in its first list is indexed; or it is
//     dropped, because the kind or the namespace is gone.
//  4. When there is none left, the gate opens.
//
// # Guarantees
//
// It opens once and stays open, whatever is expected afterwards, unless it is
// closed again because indices are filled anew.
//
// # Assumptions
//
// Nobody waits here with an object: kinds that have no indices, and the other
// handlers of those that have, are listed after the gate has opened.
type Gate struct {
	mu      sync.Mutex
	sources map[string]bool // whether they are synced; nil when the gate is open
	missing int             // those that are not
	open    chan struct{}
}

// NewGate makes a gate that waits for the sources. With none it is open.
func NewGate(sources ...string) *Gate {
	g := &Gate{sources: map[string]bool{}, open: make(chan struct{})}
	for _, name := range sources {
		g.Expect(name)
	}
	g.settle()
	return g
}

// Expect makes an unopened gate wait for the source, too. For a source that is
// known already it changes nothing.
func (g *Gate) Expect(source string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.sources[source]; g.sources != nil && !known {
		g.sources[source] = false
		g.missing++
	}
}

// Synced tells that all there was in the source is indexed. It may be told
// again, and of sources that are not expected.
func (g *Gate) Synced(source string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if synced, known := g.sources[source]; known && !synced {
		g.sources[source] = true
		g.missing--
		g.settle()
	}
}

// Drop tells that there is nothing more to be expected of the source, because it
// does not exist any more.
func (g *Gate) Drop(source string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if synced, known := g.sources[source]; known && !synced {
		g.missing--
		g.settle()
	}
	delete(g.sources, source)
}

// Close makes a gate wait for the source, and for all that is expected from now
// on: what was synced before is not anymore.
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

// settle opens the gate if nothing is waited for.
func (g *Gate) settle() {
	if g.missing == 0 {
		g.sources = nil
		close(g.open)
	}
}

// Open is closed when the gate is open, or has been meanwhile.
func (g *Gate) Open() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// Waiting are the names of the sources that are not synced yet, in alphabetic
// order; none if the gate is open.
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

// Await waits until the gate is open. As long as it is not, tell is called in
// the interval with what is being waited for: a source that cannot be listed must
// not hold up everything in silence. The error is why the context is done.
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
