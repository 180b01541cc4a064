package registry

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/kind"
)

// Request is what one call of a handler is given, and where it leaves what it
// wants: the handler's own struct is made from it where types are known.
type Request struct {
	Body     *object.Body
	Resource kind.Info
	Cause    *cause.Cause // whole: see Handler.Narrow; nil for event handlers
	Event    string       // what the stream said: "ADDED", "MODIFIED", "DELETED", or "" for a listing
	Missed   bool         // the deletion was found out later: only the identity is known
	Review   *Review      // nil for all but handlers of reviews
	Memos    *Memos
	Post     func(kind, reason, message string) // posts a Kubernetes event about the object; never nil
	PostFrom slog.Level                         // the least that is worth an event
	API      API                                // nil in tests that do without
	Log      *slog.Logger

	Handler *Handler      // nil while filters are being asked
	Retry   int           // attempts made before this one
	Started time.Time     // of the first attempt
	Key     func() string // the same for all attempts at one change

	Patch  *patch.Patch // what the handler asks for; sent whatever it returns
	Result any          // stored only if the handler succeeds; nil for none

	// Wrote must be called before the handler writes to the cluster by itself, or may
	// do so. May be nil.
	Wrote func()

	// RunSubs makes a pass over sub-handlers now; see package execute.
	RunSubs func(ctx context.Context, subs []*Handler, how SubOptions) error
}

// API is how handlers reach the cluster.
type API interface {
	// RESTConfig configures other clients of the cluster.
	RESTConfig() *rest.Config
}

// TemporaryError is an error after which the handler is to be called again.
type TemporaryError struct {
	Err   error
	Delay Opt[time.Duration] // unset: at once
	Wait  bool               // nothing failed: something is just not there yet
}

func (e *TemporaryError) Error() string { return e.Err.Error() }
func (e *TemporaryError) Unwrap() error { return e.Err }

// PermanentError is an error after which calling the handler again makes no sense.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// UndecodableError tells that the object does not fit the handler's type, so that
// the handler was not called at all.
type UndecodableError struct{ Err error }

func (e *UndecodableError) Error() string { return e.Err.Error() }
func (e *UndecodableError) Unwrap() error { return e.Err }

// UnfinishedError tells that some sub-handlers are to be called again.
type UnfinishedError struct{ Delay time.Duration }

func (e *UnfinishedError) Error() string { return "some sub-handlers are not finished" }
