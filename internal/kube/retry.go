package kube

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
)

// outcome is the result of one attempt of a request.
type outcome struct {
	err   error
	code  int       // HTTP status; 0 if there was no response
	began time.Time // earliest time at which it was sent
	sent  bool      // the request may have reached the server
	mine  bool      // the caller caused the error: ctx ended, or a callback failed
	used  bool      // the caller has received a part of the response
	lost  bool      // the response was lost, but the result is known from a read
}

// verdict is the consequence of an outcome.
type verdict int

const (
	answer  verdict = iota // return the success or error to the caller
	again                  // retry, if there is a pause left
	login                  // the credentials were rejected
	unknown                // a write that may or may not have been applied
)

// decide returns the consequence of an attempt. A repeatable request has the same
// effect if it is sent twice: reads, and deletions by uid.
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

// cannotBeApplied reports whether the second attempt with this outcome is the last one. A client that
// may edit an object can write managedFields with which every server-side apply fails with the status
// 500. The caller's other objects must not wait for all retries then.
func (r *call) cannotBeApplied(o outcome) bool {
	return o.code == http.StatusInternalServerError && r.contentType == string(types.ApplyPatchType)
}

// maybeApplied reports whether the server may have applied the request, or may still
// apply it, despite the error.
func maybeApplied(s metav1.Status) bool {
	switch {
	case s.Code == http.StatusBadGateway, s.Code == http.StatusGatewayTimeout:
		return true
	case s.Reason == metav1.StatusReasonTimeout, s.Reason == metav1.StatusReasonServerTimeout:
		return true
	}
	return strings.Contains(s.Message, "etcdserver: request timed out")
}

// pauses iterates over the backoffs of one request. The iteration starts with the first
// failure.
type pauses struct {
	seq    iter.Seq[time.Duration]
	jitter jitter.Source
	next   func() (time.Duration, bool)
	stop   func()
}

// take returns the next pause, and false if none is left. The server's hint lengthens
// the pause, or replaces it if enforce is set.
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

// Sleep waits for d, inside the function given to [WithPauses] if there is one. It
// returns an error only if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	return Pause(ctx, func() error { return backoff.Sleep(ctx, d) })
}

// pausesKey is the context key of the function given to [WithPauses].
type pausesKey struct{}

// WithPauses runs the pauses between the attempts of a request inside the function
// within, which may release a resource meanwhile. It must call its argument.
func WithPauses(ctx context.Context, within func(pause func())) context.Context {
	return context.WithValue(ctx, pausesKey{}, within)
}

// Pause runs pause, inside the function given to [WithPauses] if there is one, and returns its
// error.
func Pause(ctx context.Context, pause func() error) (err error) {
	within, ok := ctx.Value(pausesKey{}).(func(func()))
	if !ok {
		return pause()
	}
	within(func() { err = pause() })
	return err
}
