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

	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/object"
)

// call is one request with all that its attempts have in common.
type call struct {
	verb   string // as in RBAC rules
	method string
	target Target
	path   string // the target's, unless it is about no resource
	query  url.Values

	accept      string // application/json if empty
	contentType string
	body        []byte

	repeatable bool // may be sent again if the answer was lost
	route      route

	recognized func(*object.Body) bool // tells the effect of a write; may be nil
	confirmed  *object.Body            // the object with that effect, if there was no response

	// read takes the answer of a success. Its errors are those of a broken
	// answer, except for a callbackError.
	read func(a *response) error
}

// route says on which connection a request goes and what limits it.
type route int

const (
	whole    route = iota // answer read in one go: a deadline for all of it
	streamed              // answer handed on while it arrives: a deadline for its silence
	followed              // a watch: a connection of its own, a deadline for its beginning
	probed                // a watch among the requests
	aside                 // read in one go, on another connection than the others
)

func (r route) isWatch() bool { return r == followed || r == probed }

// response is the answer of a successful attempt.
type response struct {
	*http.Response
	cancel context.CancelCauseFunc // ends the request
	cause  func() error            // why the request was ended, if it was
	conns  *conns                  // that it came over
	kept   bool                    // the reader closes the body and cancels later
	used   bool                    // a part was handed on: too late to try again
}

// callbackError is the error of a function of the caller's.
type callbackError struct{ error }

func (r *call) String() string {
	if r.target.Info.Plural == "" {
		return r.verb + " " + r.path
	}
	return r.verb + " " + r.target.String()
}

// do sends the request until there is an answer to give to the caller.
func (c *Client) do(ctx context.Context, r *call) (err error) {
	if r.path == "" {
		if r.path, err = r.target.Path(); err != nil {
			return fmt.Errorf("%s: %w", r.verb, err)
		}
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
	var unauthorized error // the last refusal of the credentials, if nothing else came since
	var left time.Duration // of a pause that was cut short
	for attempt := 1; ; attempt++ {
		conns, err := c.admitted(ctx)
		if err != nil {
			return err
		}
		o := c.attempt(ctx, conns, r)
		c.noteAnswer(conns, o)
		if o.late() || o.lost {
			c.leave(conns)
		}
		verdict := decide(o, r.repeatable)
		if verdict != login && o.code != 0 {
			auth.refusals = 0
			unauthorized = nil
		}
		if unauthorized != nil && ctx.Err() != nil {
			return fmt.Errorf("%w, while the credentials are refused: %w", context.Cause(ctx), unauthorized)
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
		case login:
			attempt--
			unauthorized = o.err
			if err := auth.refused(ctx, c, conns, r, o.err); err != nil {
				return err
			}
			continue
		}
		if o.code == 0 {
			c.renew(conns, time.Second) // the server may have a certificate of another authority now
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
			attempt-- // it came early, and does not count: the pause goes on
		}
		if err := pausing(ctx, func() (err error) { left, err = c.wait(ctx, pause, o); return err }); err != nil {
			return fmt.Errorf("%w, while waiting to retry after: %w", err, o.err)
		}
	}
}

// wait makes a pause, and returns the rest of it if it was cut short. A Retry-After
// of the server is obeyed.
func (c *Client) wait(ctx context.Context, pause time.Duration, o outcome) (left time.Duration, err error) {
	if hint := RetryAfter(o.err); hint > 0 {
		return 0, sleep(ctx, max(pause, hint), nil)
	}
	if o.code == 0 {
		return c.shared.recovery.pause(ctx, pause, c.opts.Jitter.Shorten(unreachablePatience, jitter.Slight))
	}
	return c.shared.recovery.pause(ctx, pause, c.opts.Jitter.Shorten(patience, jitter.Slight))
}

// logFailure logs a failed attempt: at ERROR once a minute for each kind of failure,
// else at DEBUG.
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

// explain is the error of an outcome as the caller shall see it.
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
	if r == followed || r == aside {
		return c.watches
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
	if c.cfg.UserAgent != "" { // or else client-go copies the request for it
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
