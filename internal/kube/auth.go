package kube

import (
	"log/slog"
	"sync"
	"time"
)

// authState knows whether requests wait because their credentials were
// refused, so that this is said once and not once per request and attempt.
type authState struct {
	log    *slog.Logger
	notify func(error)

	mu      sync.Mutex
	waiting int
	since   time.Time
}

// refused notes that a request begins to wait.
func (a *authState) refused(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting++
	if a.waiting > 1 {
		return
	}
	a.since = time.Now()
	a.log.Warn("The API server refuses the credentials; they are tried again until it accepts them or new ones come.", "error", err)
	if a.notify != nil {
		a.notify(err)
	}
}

// settled notes that a request waits no more, accepted or not.
func (a *authState) settled() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting--
	if a.waiting > 0 {
		return
	}
	a.log.Info("No request waits for credentials any more.", "after", time.Since(a.since))
	if a.notify != nil {
		a.notify(nil)
	}
}

// authWait is one request's part in it.
type authWait struct {
	state    *authState
	refusals int // in a row
}

// refused returns how long to wait before the next attempt.
func (w *authWait) refused(err error) time.Duration {
	w.refusals++
	if w.refusals == 1 {
		w.state.refused(err)
	}
	return authPause(w.refusals)
}

func (w *authWait) settle() {
	if w.refusals > 0 {
		w.refusals = 0
		w.state.settled()
	}
}

// authPause is how long to wait after n refusals in a row.
func authPause(n int) time.Duration {
	const first, most = 250 * time.Millisecond, 5 * time.Second
	if n > 5 {
		return most
	}
	return min(first<<(n-1), most)
}
