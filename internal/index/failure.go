package index

import (
	"errors"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/registry"
)

// Keep is what an index function returns as its error to leave the values that
// the object has in the index as they are. Nothing has failed then.
var Keep = errors.New("the values in the index are to be kept")

// keeps tells whether the function wants to keep the values. A class that was
// given to the error later wins, as for all errors.
func keeps(err error) bool {
	switch err.(type) {
	case *registry.TemporaryError, *registry.PermanentError:
		return false
	}
	return errors.Is(err, Keep)
}

// Verdict is what is to become of the values that an object has in an index.
type Verdict int

// The verdicts.
const (
	Preserved Verdict = iota // they stay as they are
	Replaced                 // by the result
	Removed                  // the object is not in the index any more
)

func (v Verdict) String() string {
	return [...]string{"preserved", "replaced", "removed"}[v]
}

// Failure is what is remembered of an index function that fails for an object:
// attempts in a row, since successes are forgotten. The zero value is that of a
// function that did not fail.
type Failure struct {
	Started time.Time // when the first attempt was made
	Retries int       // attempts made; 0 if it did not fail
	Due     time.Time // it is not called earlier
	Final   bool      // it is not called again
}

// May tells whether the function is to be called. If it is not, the object is
// not in the index.
//
// Nothing but an event makes it be called: when it is due, but there is no news
// of the object, nobody calls it.
func (f Failure) May(now time.Time) bool { return !f.Final && !now.Before(f.Due) }

// begun is the state with which an attempt is made.
func (f Failure) begun(now time.Time) Failure {
	if f.Retries == 0 {
		f.Started = now
	}
	return f
}

// After tells what the outcome of an attempt, which ended now, means for the
// values, and what is to be remembered of the function. The mode is what the
// function's unclassified errors mean.
//
//   - A result replaces the values; an empty one removes them.
//   - No result and no error preserves them: the function said [Keep], or it
//     failed and that is to be ignored.
//   - An error removes them. It can be tried again after the delay, or, if it is
//     final, never.
//   - An object that does not fit the function's type is treated as the mode has
//     it for errors, but can be tried again with its next event.
//   - An attempt that was interrupted by the stop preserves them.
func (f Failure) After(o execute.Outcome, mode registry.ErrorMode, now time.Time) (Verdict, Failure) {
	_, misfit := errors.AsType[*registry.UndecodableError](o.Err)
	switch {
	case o.Void && misfit && mode != registry.Ignore:
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

// Failures are those of one object, by the ids of the functions; nil if there
// are none.
type Failures map[string]Failure

// With is the failures with one of them being another one, or none at all. The
// receiver is given away.
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
