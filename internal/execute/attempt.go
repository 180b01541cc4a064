package execute

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/progress"
)

// Attempt is one call of one handler. Call [Attempt.Make] once.
type Attempt struct {
	Title   string // the word for it in logs, such as "Handler" or "Daemon"
	ID      string
	Limits  handler.Limits
	Retries int       // the number of earlier calls
	Started time.Time // the start of the first attempt; the timeout counts from it
	Early   bool      // the call is before the end of a delay: it does not count as an attempt

	DefaultBackoff time.Duration
	DefaultMode    handler.ErrorMode

	Log *slog.Logger
	// Own points to the logger of the call. The functions around the call may replace that
	// logger; the outcome is then logged with it. Log is used if either is nil.
	Own     **slog.Logger
	Observe Observer // may be nil
	Call    func(context.Context) (result any, err error)

	// Quiet reports whether a success with this result changed nothing: then it is
	// logged at DEBUG. nil means that every success is logged at INFO.
	Quiet func(result any) bool

	// Known reports whether it was logged before that the object does not fit the
	// handler's Go type, with this error and for this state of the object: then it is
	// logged at DEBUG. nil means that it was not.
	Known func(*handler.UndecodableError) bool

	// Enter waits until the call may start; see [Entrance.For]. Its error means that
	// the handler must not be called. nil means that the call starts at once.
	Enter func(context.Context) (leave func(), err error)
}

// Observer is called after each handler call, for metrics. It must be quick.
type Observer func(id string, o Outcome, took time.Duration)

// Outcome is the outcome of an attempt.
type Outcome struct {
	Final   bool                       // there are no further attempts
	Err     error                      // nil means success, also with an ignored error
	Message string                     // the text of the error for the record
	Delay   handler.Opt[time.Duration] // until the next attempt, if not final; unset means at once
	Result  any                        // the handler's result as JSON; nil means none
	Ignored error                      // the error that counts as a success; may be nil
	Waited  time.Duration              // the wait before the call; it extends the timeout

	// Void means that the attempt does not count and is not recorded. The handler is
	// due again after the delay, or at the next start if the operator is stopping.
	Void bool
}

// ErrStopping is the cause of a handler's canceled context when the operator stops.
var ErrStopping = errors.New("the operator is stopping")

// Errors for exceeded limits of a handler, for use with [errors.Is].
var (
	ErrTimeout = errors.New("the handler has run out of time")
	ErrRetries = errors.New("the handler has run out of attempts")
)

// TimeoutError means that a handler had no time left. It matches [ErrTimeout].
type TimeoutError struct{ Message string }

func (e *TimeoutError) Error() string { return e.Message }

// Is reports whether target is [ErrTimeout].
func (e *TimeoutError) Is(target error) bool { return target == ErrTimeout }

// RetriesError means that a handler had no attempts left. It matches [ErrRetries].
type RetriesError struct{ Message string }

func (e *RetriesError) Error() string { return e.Message }

// Is reports whether target is [ErrRetries].
func (e *RetriesError) Is(target error) bool { return target == ErrRetries }

// PanicError is a panic of a handler.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Make calls the handler, unless its limits are exceeded, and logs the outcome. The
// outcome is void if [Attempt.Enter] failed.
func (a Attempt) Make(ctx context.Context) (o Outcome) {
	// Logging may take long, and the entrance must be asked right before the call.
	a.Log.Debug(a.name()+" is invoked.", "handler", a.ID)
	leave, waited, err := a.enter(ctx)
	if err != nil {
		return Outcome{Void: true, Err: err}
	}
	defer func() { leave(); o.Waited = waited }()
	if failed, err := a.Exhausted(); failed {
		a.Log.Error(err.Error(), "handler", a.ID)
		return Outcome{Final: true, Err: err, Message: err.Error()}
	}
	if a.Observe == nil {
		result, err := a.call(ctx)
		return a.conclude(ctx, result, err)
	}
	start := time.Now()
	result, err := a.call(ctx)
	took := time.Since(start)
	o = a.conclude(ctx, result, err)
	a.Observe(a.ID, o, took)
	return o
}

// enter waits until the handler may be called. It is not inlined, so its stack frame is
// released before the call.
//
//go:noinline
func (a *Attempt) enter(ctx context.Context) (leave func(), waited time.Duration, err error) {
	now := time.Now()
	a.Started = progress.TimeoutStart(a.Started, now)
	if a.Enter == nil {
		return func() {}, 0, nil
	}
	if leave, err = a.Enter(ctx); err != nil {
		a.Log.Debug(a.name()+" is not called now.", "handler", a.ID, "reason", err)
		return nil, 0, err
	}
	if waited = time.Since(now); a.Limits.Timeout.Set {
		a.Started = a.Started.Add(waited)
	}
	return leave, waited, nil
}

func (a *Attempt) name() string { return a.Title + " '" + a.ID + "'" }

// Exhausted reports whether a limit forbids the call, with the error for the record.
func (a *Attempt) Exhausted() (bool, error) {
	spent := time.Since(a.Started)
	switch {
	case a.Limits.Timeout.Set && spent >= a.Limits.Timeout.Is:
		return true, &TimeoutError{fmt.Sprintf("%s has timed out after %s.", a.name(), clock(spent))}
	case a.Limits.Retries.Set && a.Retries >= a.Limits.Retries.Is:
		return true, &RetriesError{fmt.Sprintf("%s has exceeded %d retries.", a.name(), a.Retries)}
	}
	return false, nil
}

// call calls the handler with its deadline, and turns a panic into a [PanicError].
func (a *Attempt) call(ctx context.Context) (result any, err error) {
	if a.Limits.Timeout.Set {
		var cancel context.CancelFunc
		deadline := a.Started.Add(a.Limits.Timeout.Is)
		ctx, cancel = context.WithDeadlineCause(ctx, deadline, &TimeoutError{a.name() + " has run out of time."})
		defer cancel()
	}
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, PanicStack()}
		}
	}()
	return a.Call(ctx)
}

// conclude derives the outcome from the result and the error of the handler. The error
// types of package handler that classify an error are always outermost.
func (a *Attempt) conclude(ctx context.Context, result any, err error) Outcome {
	if a.Own != nil && *a.Own != nil {
		a.Log = *a.Own
	}
	if err != nil && errors.Is(context.Cause(ctx), ErrStopping) {
		a.Log.Warn(a.name()+" is interrupted by the stop and will be called again at the next start.", "handler", a.ID, "error", err)
		return Outcome{Void: true, Err: err}
	}
	switch e := err.(type) {
	case nil:
		level := slog.LevelInfo
		if a.Quiet != nil && a.Quiet(result) {
			level = slog.LevelDebug
		}
		a.Log.Log(ctx, level, a.name()+" succeeded.", "handler", a.ID)
		return Outcome{Final: true, Result: result}
	case *handler.UnfinishedError:
		a.Log.Debug(a.name()+" has unfinished sub-handlers. Will retry soon.", "handler", a.ID)
		return Outcome{Err: err, Message: message(nil), Delay: handler.Some(e.Delay)}
	case *handler.UndecodableError:
		if a.Limits.OnError.Or(a.DefaultMode) == handler.Fail {
			return a.permanent(err)
		}
		level := slog.LevelError
		if a.Known != nil && a.Known(e) {
			level = slog.LevelDebug
		}
		a.Log.Log(ctx, level, a.name()+" is not called, because the object does not fit its type: "+text(err), "handler", a.ID)
		return Outcome{Void: true, Err: err, Delay: handler.Some(a.Limits.Backoff.Or(a.DefaultBackoff))}
	case *handler.PermanentError:
		return a.permanent(err)
	case *handler.TemporaryError:
		return a.temporary(e)
	}
	return a.unclassified(err)
}

// Refused returns the outcome of an attempt whose change the API server refused: it is
// as if the handler had returned this error.
func (a Attempt) Refused(err error) Outcome { return a.conclude(context.Background(), nil, err) }

// permanent returns the outcome of an error that is not retried.
func (a *Attempt) permanent(err error) Outcome {
	level := slog.LevelError
	if denied := (*handler.DeniedError)(nil); errors.As(err, &denied) {
		level = slog.LevelInfo // denying requests is the normal work of a validating webhook
	}
	a.Log.Log(context.Background(), level, a.name()+" failed permanently: "+text(err), "handler", a.ID)
	return Outcome{Final: true, Err: err, Message: cut(err.Error())}
}

// temporary returns the outcome of an error that is retried, unless the next attempt
// would exceed a limit.
func (a *Attempt) temporary(err *handler.TemporaryError) Outcome {
	verb := " failed temporarily"
	if err.Wait {
		verb = " is waiting"
	}
	if limit := a.lookAhead(err.Delay.Or(0)); limit != nil {
		msg := fmt.Sprintf("%s%s but will %s: %s", a.name(), verb, limit.temporarily, message(err))
		a.Log.Error(msg, "handler", a.ID)
		return Outcome{Final: true, Err: limit.err(msg), Message: cut(msg)}
	}
	if err.Wait {
		a.Log.Info(a.name()+verb+": "+message(err), "handler", a.ID, "next", err.Delay.Or(0))
	} else {
		a.Log.Error(a.name()+verb+": "+message(err), "handler", a.ID)
	}
	return Outcome{Err: err, Message: message(err), Delay: err.Delay}
}

// unclassified returns the outcome of an error that is neither temporary nor permanent,
// by the error mode of the handler.
func (a *Attempt) unclassified(err error) Outcome {
	failure := a.name() + " failed with an exception and will "
	attrs := []any{"handler", a.ID}
	var panicked *PanicError
	if errors.As(err, &panicked) {
		attrs = append(attrs, "stack", string(panicked.Stack))
	}
	switch a.Limits.OnError.Or(a.DefaultMode) {
	case handler.Ignore:
		a.Log.Error(failure+"ignore it: "+text(err), attrs...)
		return Outcome{Final: true, Ignored: err}
	case handler.Fail:
		a.Log.Error(failure+"stop now: "+text(err), attrs...)
		return Outcome{Final: true, Err: err, Message: cut(err.Error())}
	}
	delay := a.backoff(err)
	if limit := a.lookAhead(delay); limit != nil {
		msg := fmt.Sprintf("%sstop now (it would %s on the next attempt): %s", failure, limit.unclassified, text(err))
		a.Log.Error(msg, attrs...)
		return Outcome{Final: true, Err: limit.err(msg), Message: cut(msg)}
	}
	a.Log.Error(failure+"try again in "+seconds(delay)+" seconds: "+text(err), attrs...)
	return Outcome{Err: err, Message: cut(err.Error()), Delay: handler.Some(delay)}
}

// backoff returns the delay after an unclassified error. Without a declared backoff,
// errors of the API server that usually vanish soon are retried after a second, and
// then after growing delays up to the default.
func (a *Attempt) backoff(err error) time.Duration {
	if a.Limits.Backoff.Set || !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return a.Limits.Backoff.Or(a.DefaultBackoff)
	}
	return backoff.Backoff{First: time.Second, Most: a.DefaultBackoff}.After(a.Retries + 1)
}

// limit is a limit that the next attempt would exceed.
type limit struct {
	temporarily, unclassified string
	err                       func(msg string) error
}

// lookAhead returns the limit that an attempt after the delay would exceed. nil means
// that the attempt is possible.
func (a *Attempt) lookAhead(pause time.Duration) *limit {
	timeout, retries := a.Limits.Timeout, a.Limits.Retries
	switch {
	case timeout.Set && time.Since(a.Started)+pause >= timeout.Is:
		return &limit{
			"time out after " + seconds(timeout.Is) + " seconds",
			"time out in " + seconds(timeout.Is) + " seconds",
			func(msg string) error { return &TimeoutError{msg} },
		}
	case retries.Set && !a.Early && a.Retries+1 >= retries.Is:
		return &limit{
			fmt.Sprintf("exceed %d retries", retries.Is),
			fmt.Sprintf("exceed %d retries", retries.Is),
			func(msg string) error { return &RetriesError{msg} },
		}
	}
	return nil
}

// message returns the text for the record. An error without a text becomes "None", as
// in Kopf.
func message(err error) string {
	if err == nil || err.Error() == "" {
		return "None"
	}
	return cut(err.Error())
}

// text returns the error for a log line. An error without a text is shown by its type.
func text(err error) string {
	if s := err.Error(); s != "" {
		return cut(s)
	}
	return fmt.Sprintf("%T", err)
}

// longest is the number of characters to which the text of an error is cut.
const longest = 1024

// cut shortens the text of an error: a record must fit on the object.
func cut(s string) string {
	last, n := 0, 0
	for i := range s {
		switch n {
		case longest - 1:
			last = i
		case longest:
			return s[:last] + "…"
		}
		n++
	}
	return s
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// clock formats a duration as H:MM:SS, with six decimals if it has a fraction.
func clock(d time.Duration) string {
	s := fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
	if us := d.Microseconds() % 1_000_000; us != 0 {
		s += fmt.Sprintf(".%06d", us)
	}
	return s
}
