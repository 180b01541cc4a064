package gopf

import (
	"errors"
	"fmt"
	"time"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/engine"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/login"
	"gopf.dev/gopf/internal/registry"
)

// TemporaryError asks for another attempt after Delay. Make one with
// [RetryAfter] or [Wait].
//
// Of several classified errors in one chain the outermost decides.
type TemporaryError struct {
	Err   error
	Delay time.Duration

	wait bool
}

func (e *TemporaryError) Error() string { return e.Err.Error() }
func (e *TemporaryError) Unwrap() error { return e.Err }

// RetryAfter makes err temporary: the handler is called again after the delay. A
// nil error stays nil, which is success.
func RetryAfter(delay time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &TemporaryError{Err: err, Delay: delay}
}

// Wait is for what is not there yet but no failure either: the handler is
// called again after the delay, and the log says so without alarm.
//
//	return gopf.Wait(10*time.Second, "the volume is not bound")
func Wait(delay time.Duration, format string, args ...any) error {
	return &TemporaryError{Err: fmt.Errorf(format, args...), Delay: delay, wait: true}
}

// PermanentError fails the handler for good. Make one with [Permanent].
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// Permanent makes err permanent: the handler is not called again for this
// change. A nil error stays nil, which is success.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{err}
}

// LoginError is the error of [Operator.Run] if there are no credentials to start
// with: a login handler failed permanently, the kubeconfig cannot be used, or no login
// brought any. [Operator.FreezePeers] and [Operator.ResumePeers] return it as well
// if the cluster refuses the credentials. Test for it with [errors.As]; Err has the
// details.
//
// An operator that has started never ends for want of credentials: its requests
// wait for the next login.
type LoginError struct{ Err error }

func (e *LoginError) Error() string { return e.Err.Error() }
func (e *LoginError) Unwrap() error { return e.Err }

// explainLogin makes an error about missing or refused credentials a [LoginError].
func explainLogin(err error) error {
	if errors.As(err, new(*login.Error)) || errors.As(err, new(*engine.RefusedError)) {
		return &LoginError{err}
	}
	return err
}

// ErrStopping is the cause of the cancellation of a handler's context when the
// operator exits; see [context.Cause]. An error that a handler returns then
// does not count as a failure: the handler is called again at the next start.
var ErrStopping = execute.ErrStopping

// Why the context of a daemon was cancelled, besides [ErrStopping]; see
// [context.Cause].
var (
	ErrDeleted   = daemon.ErrDeleted   // the object is being deleted
	ErrUnmatched = daemon.ErrUnmatched // the object does not match the filters anymore
	ErrPaused    = daemon.ErrPaused    // the operator pauses
)

// ErrTimeout is the cause of the cancellation of a handler's context when its
// [Timeout] is over; see [context.Cause].
var ErrTimeout = execute.ErrTimeout

// ErrRetries tells that a handler has no attempts left; see [Retries].
var ErrRetries = execute.ErrRetries

// classify turns the errors that users know into those that the engine knows.
func classify(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch known := e.(type) {
		case *TemporaryError:
			return &registry.TemporaryError{Err: err, Delay: registry.Some(known.Delay), Wait: known.wait}
		case *PermanentError:
			return &registry.PermanentError{Err: err}
		case *AdmissionError:
			return known.asDenial(err)
		case *registry.UnfinishedError:
			return known
		case interface{ Unwrap() []error }:
			if found := classifyJoined(err, known.Unwrap()); found != nil {
				return found
			}
			return err
		}
	}
	return err
}

// classifyJoined looks into errors that were joined: the first one that is
// classified decides.
func classifyJoined(whole error, parts []error) error {
	for _, part := range parts {
		switch found := classify(part).(type) {
		case *registry.TemporaryError:
			return &registry.TemporaryError{Err: whole, Delay: found.Delay, Wait: found.Wait}
		case *registry.PermanentError:
			return &registry.PermanentError{Err: whole}
		case *registry.DeniedError:
			return &registry.DeniedError{Code: found.Code, Err: whole}
		case *registry.UnfinishedError:
			return found
		}
	}
	return nil
}
