// Package turnstile limits the calls of a group that run at the same time.
package turnstile

import (
	"context"
	"sync"
)

// Gate limits the calls of each group. Groups without calls need no memory. A nil gate limits
// nothing.
type Gate struct {
	mu     sync.Mutex
	groups map[string]*group
}

// group has the calls of a group that run or wait.
type group struct {
	slots chan struct{}
	next  chan struct{} // held by the call that takes its slots now: two calls with a part of theirs would wait for each other
	calls int
}

// Enter waits until a call of the group may run: fewer than limit of them run now. The limit
// must be the same for all calls of a group. The caller must call leave after its call. The
// only error is the cause of the end of ctx.
func (g *Gate) Enter(ctx context.Context, name string, limit int) (leave func(), err error) {
	return g.EnterAs(ctx, name, 1, limit)
}

// EnterAs is Enter for a call that counts as several, at most as many as the limit.
func (g *Gate) EnterAs(ctx context.Context, name string, calls, limit int) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	own, taken := g.join(name, limit), 0
	leave = func() {
		for range taken {
			<-own.slots
		}
		g.part(name, own)
	}
	select {
	case own.next <- struct{}{}:
		defer func() { <-own.next }()
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
	for range min(calls, limit) {
		select {
		case own.slots <- struct{}{}:
			taken++
		case <-ctx.Done():
			leave()
			return nil, context.Cause(ctx)
		}
	}
	return leave, nil
}

// Try is Enter without waiting. ok is false if the call would wait.
func (g *Gate) Try(name string, limit int) (leave func(), ok bool) {
	if g == nil {
		return func() {}, true
	}
	own := g.join(name, limit)
	select {
	case own.slots <- struct{}{}:
		return func() { <-own.slots; g.part(name, own) }, true
	default:
		g.part(name, own)
		return nil, false
	}
}

func (g *Gate) join(name string, limit int) *group {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.groups == nil {
		g.groups = map[string]*group{}
	}
	own := g.groups[name]
	if own == nil {
		own = &group{slots: make(chan struct{}, limit), next: make(chan struct{}, 1)}
		g.groups[name] = own
	}
	own.calls++
	return own
}

func (g *Gate) part(name string, own *group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if own.calls--; own.calls == 0 {
		delete(g.groups, name)
	}
}

// Groups returns the number of groups with calls that run or wait.
func (g *Gate) Groups() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.groups)
}
