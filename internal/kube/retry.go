package kube

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/jitter"
)

// outcome is what became of one attempt of a request.
type outcome struct {
	err   error
	code  int       // of the answer; 0 if none came
	began time.Time // when it was sent, at the earliest
	sent  bool      // the request may have reached the server
	mine  bool      // the error is the caller's own: ctx ended, or a callback failed
	used  bool      // the caller has got a part of the answer
	lost  bool      // the response did not come, but is known from a read
}

// verdict is what follows from an outcome.
type verdict int

const (
	answer  verdict = iota // success or error, the caller gets it
	again                  // after a pause, if there is one left
	login                  // the credentials were refused
	unknown                // a write of which nobody knows whether it was applied
)

// decide judges an attempt. A request that may be repeated is one that can be
// sent twice without doing more than once: reads, and deletions by uid.
func decide(o outcome, repeatable bool) verdict {
	if o.err == nil {
		return answer
	}
	lost := again
	if !repeatable && o.sent {
		lost = unknown
	}
	status, refused := Refused(o.err)
	switch {
	case o.mine && !refused && lost == unknown:
		return unknown
	case o.mine, o.used:
		return answer
	case !refused:
		return lost
	case o.code == http.StatusUnauthorized:
		return login
	case o.code == http.StatusTooManyRequests:
		return again
	case o.code >= 500 && o.code < 600:
		if maybeApplied(status) {
			return lost
		}
		return again
	}
	return answer
}

// maybeApplied tells the errors after which the server or something before it
// may still be busy with the request, or has done it.
func maybeApplied(s metav1.Status) bool {
	switch {
	case s.Code == http.StatusBadGateway, s.Code == http.StatusGatewayTimeout:
		return true
	case s.Reason == metav1.StatusReasonTimeout, s.Reason == metav1.StatusReasonServerTimeout:
		return true
	}
	return strings.Contains(s.Message, "etcdserver: request timed out")
}

// pauses walks through the backoffs of one request, started when needed.
type pauses struct {
	seq    iter.Seq[time.Duration]
	jitter jitter.Source
	next   func() (time.Duration, bool)
	stop   func()
}

// take returns the next pause; the server's hint lengthens it, or replaces it.
func (p *pauses) take(hint time.Duration, enforce bool) (time.Duration, bool) {
	if p.seq == nil {
		return 0, false
	}
	if p.next == nil {
		p.next, p.stop = iter.Pull(p.seq)
	}
	pause, ok := p.next()
	pause = p.jitter.Shorten(pause, jitter.Slight)
	if hint > 0 && (enforce || hint > pause) {
		pause = hint
	}
	return pause, ok
}

func (p *pauses) close() {
	if p.stop != nil {
		p.stop()
	}
}

// sleep waits for d, for a closing channel (which may be nil), or for the end
// of ctx, which is the only error.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Sleep waits for d, by means of the function given to [WithPauses] if there is
// one. It returns an error only if ctx ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	return pausing(ctx, func() error { return sleep(ctx, d, nil) })
}

// pausesKey is where a context has what makes pauses.
type pausesKey struct{}

// WithPauses has the pauses between attempts of a request made by the function,
// so that somebody else can go on meanwhile. It must call what it is given.
func WithPauses(ctx context.Context, within func(pause func())) context.Context {
	return context.WithValue(ctx, pausesKey{}, within)
}

func pausing(ctx context.Context, pause func() error) (err error) {
	within, ok := ctx.Value(pausesKey{}).(func(func()))
	if !ok {
		return pause()
	}
	within(func() { err = pause() })
	return err
}
