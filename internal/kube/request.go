package kube

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/object"
)

// call is one request, with everything that its attempts share.
type call struct {
	verb   string // as in RBAC rules
	method string
	target Target
	path   string // empty means the target's
	query  url.Values

	accept      string // empty means application/json
	contentType string
	body        []byte

	repeatable bool // may be sent again if the response was lost
	route      route

	recognized func(*object.Body) bool // recognizes the effect of a write; may be nil
	confirmed  *object.Body            // the object with that effect, if there was no response

	// read consumes a successful response. An error means that the response is broken,
	// unless it is a callbackError.
	read func(a *response) error
}

// route selects the connection and the time limits of a request.
type route int

const (
	whole    route = iota // response read at once: a deadline for all of it
	streamed              // response passed on while it arrives: a deadline for its silence
	followed              // a watch: its own connection, a deadline for the start of the response
	joint                 // a watch that shares its connection with other watches
	probed                // a watch that shares its connection with other probes
	aside                 // response read at once, on a separate connection
)

func (r route) isWatch() bool { return r == followed || r == joint || r == probed }

// response is the response to a successful attempt.
type response struct {
	*http.Response
	cancel context.CancelCauseFunc // cancels the request
	cause  func() error            // why the request was canceled; nil means that it was not
	conns  *conns                  // the connections that it came over
	kept   bool                    // the reader closes the body and cancels later
	used   bool                    // a part was delivered: too late to retry
}

// callbackError is an error of the caller's callback.
type callbackError struct{ error }

func (r *call) String() string {
	if r.target.Info.Plural == "" {
		return r.verb + " " + r.path
	}
	return r.verb + " " + r.target.String()
}

// do sends the request, with retries, until there is a result for the caller.
func (c *Client) do(ctx context.Context, r *call) (err error) {
	if r.path == "" {
		if r.path, err = r.target.Path(); err != nil {
			return fmt.Errorf("%s: %w", r.verb, err)
		}
	}
	if c.opts.DryRun && writes(r.method) {
		r.query = dryRun(r.query)
	}
	if err := c.repeat(ctx, r); err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	return nil
}

func (c *Client) repeat(ctx context.Context, r *call) error {
	pauses := pauses{seq: c.opts.Backoffs, jitter: c.opts.Jitter}
	defer pauses.close()
	var auth authWait
	var unauthorized error // the last 401, if no other response came since
	var left time.Duration // rest of a pause that was cut short
	var inapplicable bool  // an attempt ended like one that can never succeed
	for attempt := 1; ; attempt++ {
		conns, err := c.admitted(ctx)
		if err != nil {
			return err
		}
		o := c.attempt(ctx, conns, r)
		c.noteAnswer(conns, o)
		switch {
		case o.late() || o.lost:
			c.leave(conns)
		case o.code == 0 && !o.began.IsZero() && time.Since(o.began) >= suspectAfter:
			conns.closeIdle()
		}
		verdict := decide(o, r.repeatable)
		if verdict != login && o.code != 0 {
			auth.refusals = 0
			unauthorized = nil
		}
		if unauthorized != nil && ctx.Err() != nil {
			return fmt.Errorf("%w, while the API server rejects the credentials: %w", context.Cause(ctx), unauthorized)
		}
		switch verdict {
		case answer:
			if o.code != 0 {
				c.shared.recovery.hasAnswered()
			}
			if attempt > 1 && o.err == nil {
				c.opts.Log.Debug(fmt.Sprintf("Request attempt #%d succeeded: %s %s", attempt, r.method, r.path))
			}
			return conns.explain(o)
		case unknown:
			return &UnknownOutcomeError{Code: o.code, Err: o.err}
		case again:
			if r.cannotBeApplied(o) {
				if inapplicable {
					return conns.explain(o)
				}
				inapplicable = true
			}
		case login:
			attempt--
			unauthorized = o.err
			if err := auth.refused(ctx, c, conns, r, o.err); err != nil {
				return err
			}
			continue
		}
		if o.code == 0 {
			c.renew(conns, time.Second) // the server's certificate may be signed by another authority now
		}
		pause := left
		if pause == 0 {
			var more bool
			if pause, more = pauses.take(RetryAfter(o.err), c.opts.EnforceRetryAfter); !more {
				if attempt > 1 {
					c.logFailure(ctx, r, attempt, "escalating", o)
				}
				return conns.explain(o)
			}
			c.logFailure(ctx, r, attempt, "will retry", o)
		} else {
			attempt-- // an early probe does not count; the pause continues
		}
		if err := Pause(ctx, func() (err error) { left, err = c.wait(ctx, pause, o); return err }); err != nil {
			return fmt.Errorf("%w, while waiting to retry after: %w", err, o.err)
		}
	}
}

// wait pauses before a retry, and returns the rest of the pause if it was cut short. A
// Retry-After of the server is never cut short.
func (c *Client) wait(ctx context.Context, pause time.Duration, o outcome) (left time.Duration, err error) {
	if hint := RetryAfter(o.err); hint > 0 {
		return 0, backoff.Sleep(ctx, max(pause, hint))
	}
	if o.code == 0 {
		return c.shared.recovery.pause(ctx, pause, c.opts.Jitter.Shorten(unreachablePatience, jitter.Slight))
	}
	return c.shared.recovery.pause(ctx, pause, c.opts.Jitter.Shorten(patience, jitter.Slight))
}

// logFailure logs a failed attempt: once per minute and kind of failure at ERROR,
// otherwise at DEBUG.
func (c *Client) logFailure(ctx context.Context, r *call, attempt int, then string, o outcome) {
	attrs := []any{"attempt", attempt, "method", r.method, "path", r.path, "error", o.err}
	level := slog.LevelDebug
	if log, omitted := c.shared.outages.failed(o.code); log {
		level = slog.LevelError
		if omitted > 0 {
			attrs = append(attrs, "omitted", omitted)
		}
	}
	c.opts.Log.Log(ctx, level, fmt.Sprintf("Request attempt #%d failed; %s: %s %s -> %v", attempt, then, r.method, r.path, o.err), attrs...)
}

// explain returns the error of an outcome for the caller.
func (c *conns) explain(o outcome) error {
	if callback, ok := o.err.(callbackError); ok {
		return callback.error
	}
	if _, gated := o.err.(*GatedError); gated || o.err == nil || o.mine || o.code != 0 {
		return o.err
	}
	return &UnreachableError{Host: c.base.String(), Err: o.err}
}

func (c *conns) via(r route) http.RoundTripper {
	switch r {
	case followed, aside:
		return c.watches
	case joint:
		return c.joint
	case probed:
		return c.probes
	}
	return c.requests
}

func (c *conns) request(ctx context.Context, r *call) *http.Request {
	u := *c.base
	u.Path = strings.TrimRight(u.Path, "/") + r.path
	u.RawQuery = r.query.Encode()
	accept := "application/json"
	if r.accept != "" {
		accept = r.accept
	}
	req := &http.Request{
		Method: r.method, URL: &u, Host: u.Host, Header: http.Header{"Accept": {accept}},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if c.cfg.UserAgent != "" { // otherwise client-go copies the request to add it
		req.Header["User-Agent"] = []string{c.cfg.UserAgent}
	}
	if r.body != nil {
		req.Header["Content-Type"] = []string{r.contentType}
		req.ContentLength = int64(len(r.body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.body)), nil }
		req.Body, _ = req.GetBody()
	}
	return req.WithContext(ctx)
}
