package handler

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

// Request has the arguments of one handler call, and receives its patch and its result.
// The root package converts it to the typed argument of the user's function.
type Request struct {
	Body     *object.Body
	Resource kind.Info
	Cause    *cause.Cause // not narrowed, see [Handler.Narrow]; nil means none, as for event handlers
	Event    string       // "ADDED", "MODIFIED" or "DELETED"; "" means a list item
	Missed   bool         // the deletion was not watched: only the identity of the object is known
	Review   *Review      // the admission request; nil except for review handlers
	Children *Children    // nil except for reconcile handlers
	Memos    *Memos
	Post     func(kind, reason, message string) // posts a Kubernetes event about the object; never nil
	PostFrom slog.Level                         // the lowest level that is posted as a Kubernetes event
	API      API                                // may be nil in tests
	Log      *slog.Logger

	Handler *Handler      // nil while filters are evaluated
	Retry   int           // the number of earlier attempts
	Started time.Time     // the start of the first attempt
	Key     func() string // returns the same key for all attempts at one change

	Patch  *patch.Patch // the changes that the handler requests; sent even if it fails
	Result any          // stored only if the handler succeeds; nil means none

	// Wrote must be called before the handler writes to the cluster directly, or gets
	// a client that can. May be nil.
	Wrote func()

	// Reserve reserves bytes of memory for many sub-handlers, until the end of the turn. It may
	// wait. The error means that there is not enough. May be nil.
	Reserve func(bytes int) error
	// Hold takes memory for objects that the call reads. nil means no limit.
	Hold Hold
	// Room returns a function for Hold, and one that ends it. May be nil.
	Room func(context.Context) (hold Hold, leave func())
	// RunSubs runs sub-handlers now; see package execute.
	RunSubs func(ctx context.Context, subs []*Handler, how SubOptions) error
	// SubOutcome returns the recorded outcome of a sub-handler; see package execute.
	SubOutcome func(ctx context.Context, sub *Handler) (SubOutcome, error)
}

// Hold counts bytes of memory for objects that a call reads from the cluster, until its end. of
// names the objects: if they are read again, the larger number counts. ok is false if there is not
// enough memory. After the end of the call, nothing is counted, and ok is true.
//
// With wait, it waits if nothing is held yet. Calls therefore cannot wait for each other. With always, it
// waits in any case: calls that wait for each other get memory one by one, after seconds. No wait
// outlasts ctx or the call.
type Hold func(ctx context.Context, of string, bytes int, wait, always bool) (ok bool)

// SubOutcome is the outcome of a sub-handler.
type SubOutcome struct {
	Done   bool
	Failed bool   // it failed permanently
	Error  string // the text of the error, if it failed
}

// API gives handlers access to the cluster.
type API interface {
	// RESTConfig returns the configuration for other clients of the cluster.
	RESTConfig() *rest.Config
}

// TemporaryError is an error after which the handler is retried.
type TemporaryError struct {
	Err   error
	Delay Opt[time.Duration] // the delay before the retry; unset means at once
	Wait  bool               // something is not ready yet: logged at INFO, not as an error
}

func (e *TemporaryError) Error() string { return e.Err.Error() }
func (e *TemporaryError) Unwrap() error { return e.Err }

// PermanentError is an error after which the handler is not retried.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// UndecodableError means that the object does not fit the handler's Go type. The
// handler was not called.
type UndecodableError struct{ Err error }

func (e *UndecodableError) Error() string { return e.Err.Error() }
func (e *UndecodableError) Unwrap() error { return e.Err }

// UnfinishedError means that some sub-handlers must be called again, after Delay.
type UnfinishedError struct{ Delay time.Duration }

func (e *UnfinishedError) Error() string { return "some sub-handlers are not finished" }
