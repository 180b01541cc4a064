package gopf

import (
	"errors"
	"fmt"
	"time"

	"gopf.dev/gopf/internal/connect"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/login"
)

// TemporaryError makes the operator call the handler again after Delay. Create one with
// [RetryAfter] or [Wait].
//
// In a chain of errors, the outermost TemporaryError or [PermanentError] decides. Among
// joined errors, the first one decides.
type TemporaryError struct {
	Err   error
	Delay time.Duration

	wait bool
}

func (e *TemporaryError) Error() string { return e.Err.Error() }
func (e *TemporaryError) Unwrap() error { return e.Err }

// Waiting reports whether the error is one of [Wait]: waiting is not failing.
func (e *TemporaryError) Waiting() bool { return e.wait }

// RetryAfter returns a [TemporaryError]: the handler is called again after the delay,
// and the error is logged. If err is nil, RetryAfter returns nil, so it can wrap a
// whole call:
//
//	return gopf.RetryAfter(30*time.Second, reserve(ctx, c.Object.Name))
//
// The call counts as an attempt for [MaxAttempts], and the delay counts for [Timeout]. If
// the next attempt would exceed a limit, the handler fails at once, without the delay.
// The due time is stored on the object and survives restarts. [Resource.Wake] ends the
// delay early. The deletion of the object cancels it. A delay of 0 means the next turn.
//
// Unlike [Backoff], the delay applies to this error only. [ErrorsPermanent] and
// [ErrorsIgnored] have no effect on it.
func RetryAfter(delay time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &TemporaryError{Err: err, Delay: delay}
}

// Wait returns an error that asks for another call after the delay, because something
// is not ready yet. It works like [RetryAfter], and counts as an attempt, but it is
// logged at INFO: waiting is not failing. The arguments are those of [fmt.Errorf].
//
//	if pvc.Status.Phase != corev1.ClaimBound {
//		return gopf.Wait(10*time.Second, "the volume %s is not bound", pvc.Name)
//	}
//
// To be called as soon as a child object changes, use [WakeOwner] and let the delay be
// the fallback.
func Wait(delay time.Duration, format string, args ...any) error {
	return &TemporaryError{Err: fmt.Errorf(format, args...), Delay: delay, wait: true}
}

// PermanentError makes a handler fail without further attempts. Create one with
// [Permanent].
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// Permanent returns a [PermanentError]: the handler has failed for this change and is
// not called again until the next one. The error is logged. If err is nil, Permanent
// returns nil.
//
//	if c.Object.Spec.Size < 0 {
//		return gopf.Permanent(errors.New("spec.size is negative"))
//	}
//
// Other handlers of the object continue. When all have finished or failed, the change
// counts as handled. A deletion handler that fails permanently no longer blocks the
// deletion. A daemon ends for this process, and a timer is called again after its
// interval.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{err}
}

// LoginError is returned by [Operator.Run] if there are no credentials at startup: a
// login handler failed permanently, the kubeconfig is unusable, or no login returned
// credentials. [Operator.PausePeers] and [Operator.UnpausePeers] also return it if the
// API server rejects the credentials. Test for it with [errors.As]; Err has the
// details.
//
// A running operator never ends because of missing credentials: its requests wait for
// the next login.
type LoginError struct{ Err error }

func (e *LoginError) Error() string { return e.Err.Error() }
func (e *LoginError) Unwrap() error { return e.Err }

// explainLogin wraps an error about missing or rejected credentials in a [LoginError].
func explainLogin(err error) error {
	if errors.As(err, new(*login.Error)) || errors.As(err, new(*connect.RefusedError)) {
		return &LoginError{err}
	}
	return err
}

// The reasons for the end of a call. Each is the [context.Cause] of a canceled handler,
// except ErrTooManyAttempts. Test for them with [errors.Is].
var (
	// ErrStopping means that the operator shuts down. An error that the handler returns
	// then is not counted as an attempt. The handler is called again after the next
	// start.
	ErrStopping = execute.ErrStopping
	// ErrTimeout means that the [Timeout] of the handler is over. The error of a
	// handler that failed because of its timeout matches it as well.
	ErrTimeout = execute.ErrTimeout
	// ErrTooManyAttempts matches the error of a handler that has no attempts left; see
	// [MaxAttempts].
	ErrTooManyAttempts = execute.ErrRetries
	// ErrDeleted means, for daemons and timers, that the object is being deleted.
	ErrDeleted = daemon.ErrDeleted
	// ErrUnmatched means, for daemons and timers, that the object no longer matches
	// the filters.
	ErrUnmatched = daemon.ErrUnmatched
	// ErrPaused means, for daemons and timers, that the operator is paused.
	ErrPaused = daemon.ErrPaused
)

// classify converts the error types of this package to those of the engine. The
// outermost classified error decides.
func classify(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch known := e.(type) {
		case *TemporaryError:
			return &handler.TemporaryError{Err: err, Delay: handler.Some(known.Delay), Wait: known.wait}
		case *PermanentError, *SubsError:
			return &handler.PermanentError{Err: err}
		case *AdmissionError:
			return known.asDenial(err)
		case *handler.UnfinishedError:
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

// classifyJoined classifies joined errors by the first classified part. nil means that
// there is none.
func classifyJoined(whole error, parts []error) error {
	for _, part := range parts {
		switch found := classify(part).(type) {
		case *handler.TemporaryError:
			return &handler.TemporaryError{Err: whole, Delay: found.Delay, Wait: found.Wait}
		case *handler.PermanentError:
			return &handler.PermanentError{Err: whole}
		case *handler.DeniedError:
			return &handler.DeniedError{Code: found.Code, Err: whole}
		case *handler.UnfinishedError:
			return found
		}
	}
	return nil
}
