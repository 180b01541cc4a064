package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gopf.dev/gopf/internal/kube"
)

// Why a watch was ended from our side.
var (
	errInactive     = errors.New("no event, not even a bookmark, within the inactivity timeout")
	errDead         = errors.New("the watch is dead: another one got events that it did not")
	errUnanswered   = errors.New("the watch is silent, and a probe got no response although the server answers other requests")
	errOver         = errors.New("the time of a watch is over")
	errNoInitialEnd = errors.New("the list was streamed, but its end is not told")
	errRewound      = errors.New("the versions of the server went back")
)

const (
	probeFor   = time.Second
	probeGrace = 250 * time.Millisecond // for the watch to deliver what the probe did
	probeLimit = 10 * time.Second       // for a probe to end at all
	probeEvery = time.Minute            // between probes of the same silence
)

// guard ends a watch that is silent for too long.
type guard struct {
	run    *run
	limit  time.Duration // how long the watch may last after its list; 0 is for ever
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	began   time.Time // when there was no list any more; zero before
	since   time.Time // when we began to wait; zero while we do not
	version string    // where the watch has got to; "" within a list
	count   int       // of events
}

// startGuard starts a goroutine, for which stop waits.
func (r *run) startGuard(ctx context.Context, w *kube.Watch, limit time.Duration) *guard {
	ctx, cancel := context.WithCancel(ctx)
	g := &guard{run: r, limit: limit, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(g.done)
		if err := g.observe(ctx); err != nil {
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

// silence tells for how long the watch has been silent, and where.
func (g *guard) silence() (silence time.Duration, version string, count int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.since.IsZero() {
		silence = time.Since(g.since)
	}
	return silence, g.version, g.count
}

// age is how long the watch has lasted after its list.
func (g *guard) age() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.began.IsZero() {
		return 0
	}
	return time.Since(g.began)
}

// observe returns why the watch must be ended, or nil when ctx is done.
func (g *guard) observe(ctx context.Context) error {
	cfg, probes := &g.run.Config, 0
	rewound := cfg.Shared.after(g.run.epoch)
	for {
		silence, version, _ := g.silence()
		age := g.age()
		if silence < cfg.ProbeAfter {
			probes = 0
		}
		probeAt := cfg.ProbeAfter + time.Duration(probes)*probeEvery
		if version == "" {
			probeAt = 2 * cfg.ProbeAfter // a streamed list is not probed, but given up
		}
		switch {
		case g.limit > 0 && age >= g.limit:
			return errOver
		case cfg.InactivityTimeout > 0 && silence >= cfg.InactivityTimeout:
			if version == "" {
				return errNoInitialEnd
			}
			return errInactive
		case cfg.ProbeAfter > 0 && silence >= probeAt && version == "":
			return errNoInitialEnd
		case cfg.ProbeAfter > 0 && silence >= probeAt:
			probes++
			if err := g.probe(ctx); err != nil {
				return err
			}
			continue
		}
		next := time.Duration(1<<63 - 1)
		if cfg.ProbeAfter > 0 {
			next = min(next, probeAt-silence)
			if silence < cfg.ProbeAfter { // the list may end before that
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
		case <-ctx.Done(): // the watch is over by itself: nothing is wrong with it
			timer.Stop()
			return nil
		}
	}
}

// probe asks for changes since the last version on another connection. If there
// are any, and the watch still has not delivered them, the watch is dead. If there
// is no response, the watch may be as dead as that connection; but it is replaced
// only if the server has answered another request meanwhile. If it has not, it is
// slow or away, and another watch would not help. A refusal proves nothing.
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
		w, err = open() // the connection had been dead; the next one is new
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
			return nil // it was answered, that is all
		}
		switch e.Type {
		case kube.Added, kube.Modified, kube.Deleted:
			if sleep(ctx, probeGrace) != nil {
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
