package kube

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
)

// A 401 may mean that the credentials are invalid, or that one aggregated API rejected
// one request. After a 401, one of the waiting requests therefore asks the API server
// itself for a path that every client may read. If that is rejected as well, no more
// requests are sent with these credentials. The waiting requests take turns probing
// until the credentials are accepted or replaced.

// outage is a period in which the server rejects one set of credentials.
type outage struct {
	turn chan struct{} // holds one token; its holder probes the server
	over chan struct{} // closed when the outage is over
	next time.Time     // time of the next probe; used only by the token holder

	err     error        // the rejection; valid once refused > 0
	refused atomic.Int32 // rejected probes in a row; 0 means not confirmed yet
}

// waited returns the error of a request whose context ended during the outage.
func (o *outage) waited(ctx context.Context) error {
	if o.refused.Load() == 0 {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w, while the API server rejects the credentials: %w", context.Cause(ctx), o.err)
}

func newOutage() *outage {
	o := &outage{turn: make(chan struct{}, 1), over: make(chan struct{})}
	o.turn <- struct{}{}
	return o
}

// certain returns the confirmed outage that new requests must wait for, or nil.
func (c *conns) certain() *outage {
	if o := c.outage.Load(); o != nil && o.refused.Load() > 0 {
		return o
	}
	return nil
}

// suspected returns the current outage. It starts one if there is none.
func (c *conns) suspected() *outage {
	for {
		if o := c.outage.Load(); o != nil {
			return o
		}
		c.outage.CompareAndSwap(nil, newOutage())
	}
}

// end releases all waiting requests. Only the holder of the token may call it.
func (o *outage) end(c *conns) {
	c.outage.CompareAndSwap(o, nil)
	close(o.over)
}

// admitted waits while the credentials are known to be rejected, and returns the
// connections to use.
func (c *Client) admitted(ctx context.Context) (*conns, error) {
	for {
		conns := c.current()
		o := conns.certain()
		if o == nil {
			return conns, nil
		}
		if err := c.sitOut(ctx, conns, o); err != nil {
			return nil, err
		}
	}
}

// sitOut waits until the outage is over or the credentials are replaced, and takes its
// turn in probing the server. It returns an error only if ctx ends.
func (c *Client) sitOut(ctx context.Context, conns *conns, o *outage) error {
	select {
	case <-o.over:
		return nil
	case <-conns.replaced:
		return nil
	case <-ctx.Done():
		return o.waited(ctx)
	case <-o.turn:
	}
	for {
		if err := backoff.SleepOrWake(ctx, time.Until(o.next), conns.replaced); err != nil {
			o.turn <- struct{}{}
			return o.waited(ctx)
		}
		if c.renew(conns, 0) || conns.isReplaced() {
			o.end(conns)
			return nil
		}
		answer := c.attempt(ctx, conns, &call{verb: "discover", method: http.MethodGet, path: "/version", repeatable: true,
			read: func(*response) error { return nil }})
		if answer.code != http.StatusUnauthorized {
			if answer.mine {
				o.turn <- struct{}{}
				return o.waited(ctx)
			}
			// The credentials are accepted, or the probe is inconclusive. In both cases,
			// let the requests try for themselves.
			c.noteAnswer(conns, answer)
			o.end(conns)
			return nil
		}
		first := o.refused.Load() == 0
		if first {
			o.err = answer.err
		}
		o.next = time.Now().Add(c.authPause(int(o.refused.Add(1))))
		if first {
			c.shared.auth.refused(conns, answer.err)
		}
	}
}

// Hold makes all requests wait until [Client.Use] provides other credentials, because
// the current ones must no longer be used. Requests whose contexts end meanwhile return
// err.
func (c *Client) Hold(err error) {
	conns := c.shared.conns.Load()
	o := &outage{turn: make(chan struct{}), over: make(chan struct{}), err: err} // no token: requests must not probe
	o.refused.Store(1)
	conns.outage.Store(o)
}

// authWait is the state of one request that got a 401.
type authWait struct {
	conns    *conns // the connections that got the last 401
	refusals int    // 401 responses in a row on conns
}

// refused waits after a 401 until a retry makes sense.
func (w *authWait) refused(ctx context.Context, c *Client, conns *conns, r fmt.Stringer, err error) error {
	if w.conns != conns {
		w.conns, w.refusals = conns, 0
	}
	w.refusals++
	if conns.isReplaced() {
		return nil
	}
	if w.refusals == 2 && conns.certain() == nil {
		c.opts.Log.Warn("The API server returned 401 for a request although it accepts the credentials; retrying.",
			"request", r.String(), "error", err)
	}
	if w.refusals > 1 {
		if sleepErr := backoff.SleepOrWake(ctx, c.authPause(w.refusals-1), conns.replaced); sleepErr != nil {
			return fmt.Errorf("%w, while the API server rejects the credentials: %w", sleepErr, err)
		}
	}
	return c.sitOut(ctx, conns, conns.suspected())
}

// authPause returns the pause after n rejections in a row, with jitter.
func (c *Client) authPause(n int) time.Duration {
	growing := backoff.Backoff{First: 250 * time.Millisecond, Most: 5 * time.Second}
	return c.opts.Jitter.Shorten(growing.After(n), jitter.Slight)
}

// authState tracks whether the credentials are rejected. It logs each change once
// instead of once per request and attempt.
type authState struct {
	log    *slog.Logger
	notify func(*rest.Config, error)

	bad   atomic.Bool // lets successful requests skip the lock
	mu    sync.Mutex
	since time.Time // first rejection after the last success
	last  time.Time // latest rejection
}

// refused records a confirmed rejection of the credentials.
func (a *authState) refused(c *conns, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = time.Now()
	if !a.bad.Load() {
		a.since = a.last
		a.bad.Store(true)
		a.log.Warn("The API server rejects the credentials; retrying until it accepts them or they are replaced.", "error", err)
	}
	if a.notify != nil {
		a.notify(c.given, err)
	}
}

// noteAnswer records a response other than 401: the credentials are accepted. Server
// errors prove nothing about them.
func (c *Client) noteAnswer(conns *conns, o outcome) {
	a := c.shared.auth
	if !a.bad.Load() || o.code == 0 || o.code == http.StatusUnauthorized || o.code >= 500 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	// A request that was sent before the rejection proves nothing.
	if !a.bad.Load() || c.shared.conns.Load() != conns || o.began.Before(a.last) {
		return
	}
	a.bad.Store(false)
	a.log.Info("The API server accepts the credentials again.", "after", time.Since(a.since))
	if a.notify != nil {
		a.notify(conns.given, nil)
	}
}
