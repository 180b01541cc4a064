package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/kube"
)

// Reasons for closing a watch from our side.
var (
	errInactive     = errors.New("no event, not even a bookmark, within the inactivity timeout")
	errDead         = errors.New("the watch is dead: a probe received events that it did not")
	errUnanswered   = errors.New("the watch is silent, and a probe got no response although the server responds to other requests")
	errOver         = errors.New("the watch reached its time limit")
	errNoInitialEnd = errors.New("the streamed list has no end")
	errRewound      = errors.New("the server's resource versions went back")
)

const (
	probeFor   = time.Second
	probeGrace = 250 * time.Millisecond // for the watch to deliver the events of the probe
	probeLimit = 10 * time.Second       // maximum duration of a probe
	probeEvery = time.Minute            // minimum interval of probes of a watch without changes
	probeDelay = time.Second            // until the next attempt if too many probes are open
)

// guard closes a watch that is silent for too long.
type guard struct {
	run    *run
	limit  time.Duration // maximum duration of the watch after its list; 0 means no limit
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	began   time.Time // when the list was complete; zero before
	since   time.Time // when we started to wait for an event; zero while one is processed
	version string    // last version of the watch; empty during a list
	count   int       // number of events
	changes int       // number of events about objects
}

// startGuard starts the guard's goroutine. The caller must call stop, which waits for it.
func (r *run) startGuard(ctx context.Context, w *kube.Watch, limit time.Duration) *guard {
	ctx, cancel := context.WithCancel(ctx)
	g := &guard{run: r, limit: limit, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(g.done)
		err := g.observe(ctx)
		if errors.Is(err, errDead) || errors.Is(err, errUnanswered) || errors.Is(err, errInactive) {
			r.client.CloseIdle() // what happened to the watch may have happened to them
		}
		if err != nil {
			w.CloseWith(err)
		}
	}()
	return g
}

func (g *guard) stop() {
	g.cancel()
	<-g.done
}

func (g *guard) waiting(version string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since, g.version = time.Now(), version
	if g.began.IsZero() && version != "" {
		g.began = g.since
	}
}

func (g *guard) busy() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since = time.Time{}
	g.count++
}

// changed counts an event about an object.
func (g *guard) changed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changes++
}

// changesSoFar returns the number of events about objects.
func (g *guard) changesSoFar() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changes
}

// silence returns how long the watch has been silent, its last version, and the number
// of events so far.
func (g *guard) silence() (silence time.Duration, version string, count int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.since.IsZero() {
		silence = time.Since(g.since)
	}
	return silence, g.version, g.count
}

// age returns the duration of the watch after its list.
func (g *guard) age() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.began.IsZero() {
		return 0
	}
	return time.Since(g.began)
}

// observe returns the reason to close the watch, or nil when ctx is done.
func (g *guard) observe(ctx context.Context) error {
	cfg := &g.run.Config
	rewound := cfg.Shared.after(g.run.epoch)
	var probes time.Time // no probe before that
	changes := 0         // at the last probe
	for {
		silence, version, _ := g.silence()
		age := g.age()
		if now := g.changesSoFar(); now != changes {
			probes, changes = time.Time{}, now
		}
		probeIn := max(cfg.ProbeAfter-silence, time.Until(probes))
		if version == "" {
			probeIn = 2*cfg.ProbeAfter - silence // a streamed list is not probed, but given up
		}
		switch {
		case g.limit > 0 && age >= g.limit:
			return errOver
		case cfg.InactivityTimeout > 0 && silence >= cfg.InactivityTimeout:
			if version == "" {
				return errNoInitialEnd
			}
			return errInactive
		case cfg.ProbeAfter > 0 && probeIn <= 0 && version == "":
			return errNoInitialEnd
		case cfg.ProbeAfter > 0 && probeIn <= 0:
			if !cfg.Shared.beginProbe() {
				probes = time.Now().Add(probeDelay)
				continue
			}
			probes = time.Now().Add(probeEvery)
			err := g.probe(ctx)
			cfg.Shared.endProbe()
			if err != nil {
				return err
			}
			continue
		}
		next := time.Duration(1<<63 - 1)
		if cfg.ProbeAfter > 0 {
			next = min(next, probeIn)
			if silence < cfg.ProbeAfter { // the list may be complete before that
				next = min(next, cfg.ProbeAfter-silence)
			}
		}
		if cfg.InactivityTimeout > 0 {
			next = min(next, cfg.InactivityTimeout-silence)
		}
		if g.limit > 0 {
			next = min(next, g.limit-age)
		}
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-rewound:
			timer.Stop()
			return errRewound
		case <-ctx.Done(): // the watch has ended, not by us
			timer.Stop()
			return nil
		}
	}
}

// probe opens a second watch from the last version on another connection. If it
// receives events that the watch still has not delivered, the watch is dead. If it gets
// no response, the watch may be as dead as that connection. Then the watch is replaced
// only if the server has responded to another request meanwhile: otherwise the server
// is slow or down, and a new watch would not help. A refusal proves nothing.
func (g *guard) probe(outer context.Context) error {
	_, version, before := g.silence()
	answered := g.run.client.Answers()
	ctx, cancel := context.WithTimeout(outer, probeLimit)
	defer cancel()
	open := func() (*kube.Watch, error) {
		return g.run.client.Watch(ctx, g.run.Info, g.run.Namespace, kube.WatchOptions{
			ResourceVersion: version, Selector: g.run.Selector, Fields: g.run.Fields, ServerTimeout: probeFor, Probe: true,
		})
	}
	w, err := open()
	if _, refused := kube.Refused(err); err != nil && !refused && ctx.Err() == nil {
		w, err = open() // the connection was dead; the next one is new
	}
	if err != nil {
		_, _, after := g.silence()
		if _, refused := kube.Refused(err); refused || outer.Err() != nil || after != before || g.run.client.Answers() == answered {
			return nil
		}
		return fmt.Errorf("%w: %w", errUnanswered, err)
	}
	defer w.Close()
	for {
		e, err := w.Next()
		if err != nil {
			return nil // a response without events
		}
		switch e.Type {
		case kube.Added, kube.Modified, kube.Deleted:
			if backoff.Sleep(ctx, probeGrace) != nil {
				return nil
			}
			if _, _, after := g.silence(); after != before {
				return nil
			}
			return errDead
		case kube.Error:
			return nil
		}
	}
}
