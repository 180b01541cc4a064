package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/loglimit"
)

// State is the state of a stream.
type State string

// States of a stream.
const (
	Listing  State = "listing"
	Watching State = "watching"
	Failing  State = "failing" // to list or to watch; it keeps retrying
)

// Status is the state of a stream with its start and error.
type Status struct {
	State State
	Since time.Time
	Err   error // set if State is Failing
}

// health reports the states of a stream and logs its errors, each kind once until there
// is progress.
type health struct {
	cfg    *Config
	status Status
	logged loglimit.Once[string] // kinds of errors since the last progress
	loud   bool                  // the current failure was logged
}

func (h *health) listing() {
	if h.status.State != Failing {
		h.enter(Listing, nil)
	}
}

func (h *health) watching() {
	if h.loud {
		h.cfg.Log.Info("Watching the resource again.", "after", time.Since(h.status.Since))
		h.loud = false
	}
	h.enter(Watching, nil)
}

func (h *health) failing(err error) {
	if h.status.State != Failing || errorKind(h.status.Err) != errorKind(err) {
		h.enter(Failing, err)
	}
	if h.first(err) {
		h.loud = true
		h.cfg.Log.Warn("Cannot list or watch the resource; retrying.", "error", err)
	}
}

// odd logs an abnormal end of a watch that only requires a new watch.
func (h *health) odd(err error) {
	if h.first(err) {
		h.cfg.Log.Warn("The watch failed; opening a new one.", "error", err)
	}
}

func (h *health) progressed() { h.logged.Reset() }

func (h *health) enter(state State, err error) {
	if h.status.State == state && err == nil {
		return
	}
	since := time.Now()
	if h.status.State == state {
		since = h.status.Since // another error of the same failure
	}
	h.status = Status{State: state, Since: since, Err: err}
	if h.cfg.Status != nil {
		h.cfg.Status(h.status)
	}
}

func (h *health) first(err error) bool { return h.logged.First(errorKind(err)) }

// errorKind returns the kind of an error. Errors of one kind may have different texts,
// with other ports, versions or times.
func errorKind(err error) string {
	if s, ok := kube.Refused(err); ok {
		return fmt.Sprintf("%d %s", s.Code, s.Reason)
	}
	var malformed *kube.MalformedError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &malformed):
		return "malformed"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
