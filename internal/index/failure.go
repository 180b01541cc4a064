package index

import (
	"errors"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
)

// Keep is returned by an index function as its error to leave the object's values in
// the index unchanged. It is not a failure.
var Keep = errors.New("keep the values in the index")

// keeps reports whether the function returned [Keep]. If the error was wrapped as
// temporary or permanent, that class wins.
func keeps(err error) bool {
	switch err.(type) {
	case *handler.TemporaryError, *handler.PermanentError:
		return false
	}
	return errors.Is(err, Keep)
}

// Verdict is the effect of an outcome on the values that an object has in an index.
type Verdict int

// Verdicts.
const (
	Preserved Verdict = iota // the values stay
	Replaced                 // by the result
	Removed                  // the object leaves the index
)

func (v Verdict) String() string {
	return [...]string{"preserved", "replaced", "removed"}[v]
}

// Failure is the state of an index function that fails for an object. It counts
// attempts in a row; a success resets it. The zero value means that the function did
// not fail.
type Failure struct {
	Started time.Time // time of the first attempt
	Retries int       // number of attempts; 0 if it did not fail
	Due     time.Time // not called before
	Final   bool      // never called again
}

// May reports whether the function may be called. While it may not, the object is not
// in the index.
//
// Functions are called only for events: if there is no event when it is due, it is not
// called.
func (f Failure) May(now time.Time) bool { return !f.Final && !now.Before(f.Due) }

// started returns the state at the start of an attempt.
func (f Failure) started(now time.Time) Failure {
	if f.Retries == 0 {
		f.Started = now
	}
	return f
}

// After returns the effect of an outcome on the values and the next state of the
// function. now is the end of the attempt; mode applies to errors that are neither
// temporary nor permanent.
//
//   - A result replaces the values; an empty one removes them.
//   - No result and no error preserves them: the function returned [Keep], or it
//     failed and errors are ignored.
//   - An error removes them. The function may be retried after the delay, or
//     never if the error is final.
//   - An object that cannot be decoded counts as an error according to the mode,
//     but may be retried with its next event.
//   - An attempt that was interrupted by shutdown preserves them.
func (f Failure) After(o execute.Outcome, mode handler.ErrorMode, now time.Time) (Verdict, Failure) {
	_, misfit := errors.AsType[*handler.UndecodableError](o.Err)
	switch {
	case o.Void && misfit && mode != handler.Ignore:
		return Removed, f
	case o.Void:
		return Preserved, f
	case o.Err == nil && o.Result == nil:
		return Preserved, Failure{}
	case o.Err == nil:
		return Replaced, Failure{}
	}
	f.Retries++
	f.Due, f.Final = now.Add(o.Delay.Or(0)), o.Final
	return Removed, f
}

// Failures are the failures of one object by the id of the function. nil means that
// there are none.
type Failures map[string]Failure

// With sets or clears one failure and returns the result. The receiver must not be used
// afterwards.
func (f Failures) With(id string, one Failure) Failures {
	switch {
	case one.Retries > 0:
		if f == nil {
			f = Failures{}
		}
		f[id] = one
	case len(f) > 0:
		delete(f, id)
	}
	if len(f) == 0 {
		return nil
	}
	return f
}
