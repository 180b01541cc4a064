package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gopf.dev/gopf/internal/kube"
)

// State is what a stream is doing.
type State string

// The states of a stream.
const (
	Listing  State = "listing"
	Watching State = "watching"
	Failing  State = "failing" // to list or to watch; it is tried again and again
)

// Status is how a stream is doing.
type Status struct {
	State State
	Since time.Time
	Err   error // why it fails
}

// health reports the states of a stream and its errors, each kind of them once
// until there is progress.
type health struct {
	cfg    *Config
	status Status
	logged map[string]bool // kinds of errors since the last progress
	loud   bool            // the present failure was logged
}

func (h *health) listing() {
	if h.status.State != Failing {
		h.enter(Listing, nil)
	}
}

func (h *health) watching() {
	if h.loud {
		h.cfg.Log.Info("The resource is followed again.", "after", time.Since(h.status.Since))
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
		h.cfg.Log.Warn("The resource cannot be followed now; trying again.", "error", err)
	}
}

// odd reports an end of a watch that needs no more than another one.
func (h *health) odd(err error) {
	if h.first(err) {
		h.cfg.Log.Warn("The watch has failed and is replaced.", "error", err)
	}
}

func (h *health) progressed() { clear(h.logged) }

func (h *health) enter(state State, err error) {
	if h.status.State == state && err == nil {
		return
	}
	since := time.Now()
	if h.status.State == state {
		since = h.status.Since // another error, the same failure
	}
	h.status = Status{State: state, Since: since, Err: err}
	if h.cfg.Status != nil {
		h.cfg.Status(h.status)
	}
}

func (h *health) first(err error) bool {
	kind := errorKind(err)
	if h.logged[kind] {
		return false
	}
	if h.logged == nil {
		h.logged = map[string]bool{}
	}
	h.logged[kind] = true
	return true
}

// errorKind tells distinct errors from repetitions, whose texts may differ by
// ports, versions or times.
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
