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

	"gopf.dev/gopf/internal/jitter"
)

// A 401 may be about the credentials, or about one request only: an API that
// another server serves has opinions of its own. So after a 401 somebody asks
// the server itself, at a path that everybody may read. If it refuses the
// credentials there, too, no request is sent with them any more; one after
// another, those who wait ask again, until they are accepted or replaced.

// outage is the time in which the server refuses one set of credentials.
type outage struct {
	turn chan struct{} // holds one token: whoever has it asks the server
	over chan struct{} // closed at the end
	next time.Time     // when to ask again; of whoever has the token

	err     error        // the refusal, once there is one
	refused atomic.Int32 // how often in a row the server has said no; 0: not certain yet
}

// waited is the error of somebody who could not wait any longer.
func (o *outage) waited(ctx context.Context) error {
	if o.refused.Load() == 0 {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w, while the credentials are refused: %w", context.Cause(ctx), o.err)
}

func newOutage() *outage {
	o := &outage{turn: make(chan struct{}, 1), over: make(chan struct{})}
	o.turn <- struct{}{}
	return o
}

// certain is the outage that new requests must wait for; nil if there is none.
func (c *conns) certain() *outage {
	if o := c.outage.Load(); o != nil && o.refused.Load() > 0 {
		return o
	}
	return nil
}

// suspected is the outage under way, which begins here if there is none.
func (c *conns) suspected() *outage {
	for {
		if o := c.outage.Load(); o != nil {
			return o
		}
		c.outage.CompareAndSwap(nil, newOutage())
	}
}

// end lets all go on who wait. Only the holder of the turn calls it.
func (o *outage) end(c *conns) {
	c.outage.CompareAndSwap(o, nil)
	close(o.over)
}

// admitted waits while the credentials are known to be refused, and returns
// the connections to use.
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

// sitOut waits until the outage is over or other credentials are there, and
// takes its turn in finding out. Its only error is that of ctx.
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
		if err := sleep(ctx, time.Until(o.next), conns.replaced); err != nil {
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
			// Without a clear answer, the requests shall see for themselves.
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

// Hold makes all requests wait until [Client.Use] brings other credentials,
// because the present ones must not be used any more. The error is what those
// get to see whose contexts end meanwhile.
func (c *Client) Hold(err error) {
	conns := c.shared.conns.Load()
	o := &outage{turn: make(chan struct{}), over: make(chan struct{}), err: err} // nobody's turn
	o.refused.Store(1)
	conns.outage.Store(o)
}

// authWait is one request's part in it.
type authWait struct {
	conns    *conns // that refused last
	refusals int    // by them, in a row
}

// refused waits after a 401 until there is a point in trying again.
func (w *authWait) refused(ctx context.Context, c *Client, conns *conns, r fmt.Stringer, err error) error {
	if w.conns != conns {
		w.conns, w.refusals = conns, 0
	}
	w.refusals++
	if conns.isReplaced() {
		return nil
	}
	if w.refusals == 2 && conns.certain() == nil {
		c.opts.Log.Warn("The API server answers 401 to a request although it accepts the credentials; trying again.",
			"request", r.String(), "error", err)
	}
	if w.refusals > 1 {
		if sleepErr := sleep(ctx, c.authPause(w.refusals-1), conns.replaced); sleepErr != nil {
			return fmt.Errorf("%w, while the credentials are refused: %w", sleepErr, err)
		}
	}
	return c.sitOut(ctx, conns, conns.suspected())
}

// authPause is the delay after n refusals in a row, with jitter.
func (c *Client) authPause(n int) time.Duration {
	const first, most = 250 * time.Millisecond, 5 * time.Second
	return c.opts.Jitter.Shorten(min(first<<min(n-1, 5), most), jitter.Slight)
}

// authState knows whether credentials are refused, so that this is said once
// and not once per request and attempt.
type authState struct {
	log    *slog.Logger
	notify func(*rest.Config, error)

	bad   atomic.Bool // spares the others the lock
	mu    sync.Mutex
	since time.Time // of the first refusal after the last success
	last  time.Time // refusal
}

// refused notes that the server certainly does not accept the credentials.
func (a *authState) refused(c *conns, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = time.Now()
	if !a.bad.Load() {
		a.since = a.last
		a.bad.Store(true)
		a.log.Warn("The API server refuses the credentials; they are tried again until it accepts them or new ones come.", "error", err)
	}
	if a.notify != nil {
		a.notify(c.given, err)
	}
}

// noteAnswer learns from an answer other than 401 that the credentials are
// accepted. Errors of the server itself say nothing about them.
func (c *Client) noteAnswer(conns *conns, o outcome) {
	a := c.shared.auth
	if !a.bad.Load() || o.code == 0 || o.code == http.StatusUnauthorized || o.code >= 500 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	// What was sent before they were refused is no sign of the contrary.
	if !a.bad.Load() || c.shared.conns.Load() != conns || o.began.Before(a.last) {
		return
	}
	a.bad.Store(false)
	a.log.Info("The API server accepts the credentials again.", "after", time.Since(a.since))
	if a.notify != nil {
		a.notify(conns.given, nil)
	}
}
