package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// GatedError means that [Options.Gate] refused a write, which was not sent. As the
// cause of an [UnknownOutcomeError] it means that the gate closed while the write was
// in flight.
type GatedError struct{ Err error }

func (e *GatedError) Error() string { return fmt.Sprintf("the write is not allowed now: %v", e.Err) }
func (e *GatedError) Unwrap() error { return e.Err }

var errGateClosed = errors.New("the permission to write has expired")

// passGate calls the gate if there is one and the method is a write.
func (c *Client) passGate(method string) (until time.Time, err error) {
	if c.opts.Gate == nil || !writes(method) {
		return time.Time{}, nil
	}
	until, err = c.opts.Gate()
	switch {
	case err != nil:
		return time.Time{}, &GatedError{err}
	case !until.IsZero() && !until.After(time.Now()):
		return time.Time{}, &GatedError{errGateClosed}
	}
	return until, nil
}

// MayWrite returns a [GatedError] if the gate refuses writes now. It sends no request.
func (c *Client) MayWrite() error {
	_, err := c.passGate(http.MethodPost)
	return err
}

func writes(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, "":
		return false
	}
	return true
}

// closeAt cancels a request at the given time, unless the time is zero or stop is
// called first.
func closeAt(until time.Time, cancel context.CancelCauseFunc) (stop func()) {
	if until.IsZero() {
		return func() {}
	}
	timer := time.AfterFunc(time.Until(until), func() { cancel(&GatedError{errGateClosed}) })
	return func() { timer.Stop() }
}
