package kube

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// attempt sends the request once and reads its response.
func (c *Client) attempt(outer context.Context, conns *conns, r *call) (o outcome) {
	slot, err := c.takeSlot(outer, r)
	if err != nil {
		return outcome{err: err, mine: true}
	}
	started := time.Now()
	until, err := c.passGate(r.method)
	if err != nil {
		c.giveBack(r, slot, nothing)
		return outcome{err: err, mine: true}
	}
	var shown *traffic
	if c.logsTraffic(outer) {
		shown = c.newTraffic(r.method, r.path)
	}
	finished := false
	finish := func() {
		if finished {
			return
		}
		finished = true
		c.giveBack(r, slot, o.learnt(r.path))
		if c.opts.Observe != nil {
			c.opts.Observe(Observation{Verb: r.verb, Resource: r.target.Info.GVR(), Code: o.code, Duration: time.Since(started)})
		}
		if shown != nil {
			shown.request(outer, o, r.route.isWatch())
		}
	}
	defer finish()

	ctx, cancel := context.WithCancelCause(outer)
	defer closeAt(until, cancel)()
	a := &response{conns: conns, cancel: cancel, cause: func() error { return context.Cause(ctx) }}
	deadline := newDeadline(c.opts.RequestTimeout, cancel)
	defer func() {
		deadline.stop()
		if a.kept {
			return
		}
		if a.Response != nil {
			a.Body.Close()
		}
		cancel(nil)
	}()

	confirmation := c.confirm(ctx, conns, r, cancel)
	a.Response, o = roundTrip(ctx, conns, r) //nolint:bodyclose // closed above, or later by the reader that keeps it
	if o.code != 0 {
		c.shared.answers.Add(1)
	}
	if o.err == nil && r.route != whole && r.route != aside {
		deadline.stop()
		// The reader may be slow because it passes objects to code that waits for a
		// slot itself, so the slot must be free.
		finish()
		a.Body = deadline.watch(a.Body, r.route)
	}
	if o.err == nil {
		o.err = r.read(a)
		o.used = a.used
	}
	o.began = started
	o = o.blamed(outer, ctx)
	if confirmation != nil {
		cancel(nil)
		o = confirmation.stop(o)
		r.confirmed = confirmation.body
	}
	return o
}

func (c *Client) takeSlot(ctx context.Context, r *call) (*slot, error) {
	limit := c.limitOf(r.route)
	if limit == nil {
		return nil, nil
	}
	s, err := limit.acquire(ctx, tenantOf(ctx, r.target.Namespace))
	return &s, err
}

func (c *Client) giveBack(r *call, s *slot, l learnt) {
	if s != nil {
		c.limitOf(r.route).release(*s, l)
	}
}

// limitOf returns the limit of requests in flight of a route. nil means no limit.
func (c *Client) limitOf(r route) *limiter {
	switch r {
	case joint:
		return c.shared.openings
	case followed, probed, aside:
		return nil
	}
	return c.limit
}

// roundTrip sends the request and returns the head of the response.
func roundTrip(ctx context.Context, conns *conns, r *call) (*http.Response, outcome) {
	var connected atomic.Bool
	if !r.repeatable && conns.traced {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
		})
	}
	request := conns.request(ctx, r)
	resp, err := conns.via(r.route).RoundTrip(request)
	if err != nil {
		sent := connected.Load() || !conns.traced && !neverSent(err)
		return nil, outcome{err: err, sent: sent}
	}
	if resp.Request == nil { // of a custom transport
		resp.Request = request
	}
	o := outcome{code: resp.StatusCode, sent: true}
	if resp.StatusCode/100 != 2 {
		refusal := statusError(r, resp)
		o.err, o.code = refusal, int(refusal.ErrStatus.Code)
	}
	return resp, o
}

// blamed sets the error and the origin of a request that was canceled early. The
// transport's errors do not name the cause.
func (o outcome) blamed(outer, inner context.Context) outcome {
	if o.err == nil {
		return o
	}
	if _, ok := o.err.(callbackError); ok {
		o.mine = true
	} else if _, ok := Refused(o.err); !ok && inner.Err() != nil {
		o.err = context.Cause(inner)
		o.mine = outer.Err() != nil
	}
	return o
}

// late reports whether the attempt timed out.
func (o outcome) late() bool {
	_, late := o.err.(*TimeoutError)
	return late
}

// learnt returns the conclusion about the server's load. A server that refuses an eviction
// because of a disruption budget also responds with 429, whatever its load is.
func (o outcome) learnt(path string) learnt {
	switch {
	case o.code == http.StatusTooManyRequests && strings.HasSuffix(path, "/eviction"):
		return nothing
	case o.late():
		return unanswered
	case o.code == http.StatusTooManyRequests:
		return overloaded
	case o.code/100 == 2:
		return succeeded
	}
	return nothing
}

// deadline cancels a request whose response takes too long.
type deadline struct {
	timer *time.Timer // nil means no limit
	after time.Duration
}

func newDeadline(after time.Duration, cancel context.CancelCauseFunc) *deadline {
	d := &deadline{after: after}
	if after > 0 {
		d.timer = time.AfterFunc(after, func() { cancel(&TimeoutError{After: after}) })
	}
	return d
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

// watch limits how long a streamed body may stay silent. Watches are exempt: package
// stream detects silent watches.
func (d *deadline) watch(body io.ReadCloser, r route) io.ReadCloser {
	if d.timer == nil || r.isWatch() {
		return body
	}
	return &timedBody{body, d}
}

type timedBody struct {
	io.ReadCloser
	deadline *deadline
}

func (b *timedBody) Read(p []byte) (int, error) {
	b.deadline.timer.Reset(b.deadline.after)
	defer b.deadline.stop()
	return b.ReadCloser.Read(p)
}
