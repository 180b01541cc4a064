package gopf

import (
	"time"

	"gopf.dev/gopf/internal/registry"
)

// ChangeOption tunes a handler of changes: creation, updating, deletion,
// resuming.
type ChangeOption interface{ change(*changeSpec) }

type changeSpec struct {
	limits   registry.Limits
	optional bool
	deleted  bool
	formerly []string
	skip     bool // a sub-handler with If(false)
}

// RetryOption limits and paces the attempts of a handler.
type RetryOption func(*registry.Limits)

func (o RetryOption) change(s *changeSpec) { o(&s.limits) }

func (o RetryOption) daemon(s *daemonSpec) { o(&s.limits) }
func (o RetryOption) timer(s *timerSpec)   { o(&s.limits) }
func (o RetryOption) index(s *indexSpec)   { o(&s.limits) }

// Retries is how many times the handler is called at the most; the default is
// without end. 0 means that it is never called.
func Retries(n int) RetryOption {
	return func(l *registry.Limits) { l.Retries = registry.Some(n) }
}

// Timeout is how long the handler may take in all, its pauses and the
// operator's downtime included; the default is without end. The context of a
// call that reaches it is cancelled.
func Timeout(d time.Duration) RetryOption {
	return func(l *registry.Limits) { l.Timeout = registry.Some(d) }
}

// Backoff is the pause after an error that is neither temporary nor permanent;
// the default is Settings.Execution.DefaultBackoff.
func Backoff(d time.Duration) RetryOption {
	return func(l *registry.Limits) { l.Backoff = registry.Some(d) }
}

// ErrorMode says what an error means that is neither temporary nor permanent.
type ErrorMode int

// The modes for [OnError].
const (
	Retry  = ErrorMode(registry.Retry)  // try again after the backoff
	Ignore = ErrorMode(registry.Ignore) // go on as if the handler had succeeded
	Fail   = ErrorMode(registry.Fail)   // do not try again
)

// OnError says what an error means that is neither temporary nor permanent; the
// default is [Retry], for index functions [Ignore].
func OnError(mode ErrorMode) RetryOption {
	return func(l *registry.Limits) { l.OnError = registry.Some(registry.ErrorMode(mode)) }
}

type changeOption func(*changeSpec)

func (o changeOption) change(s *changeSpec) { o(s) }

// OptionalOption keeps a handler from holding up deletions; see [Optional].
type OptionalOption struct{}

func (OptionalOption) change(s *changeSpec) { s.optional = true }
func (OptionalOption) daemon(s *daemonSpec) { s.optional = true }
func (OptionalOption) timer(s *timerSpec)   { s.optional = true }

// Optional keeps a deletion handler, a daemon or a timer from holding up the
// deletion: the object gets no finalizer for it. A deletion handler is then
// called only if it happens to be in time; daemons and timers are stopped when
// the object is gone.
func Optional() OptionalOption { return OptionalOption{} }

// AlsoDeleted makes a resuming handler be called for objects that are being
// deleted, too.
func AlsoDeleted() ChangeOption { return changeOption(func(s *changeSpec) { s.deleted = true }) }

// Formerly names ids the handler had before: what is stored under them counts
// for it and is cleaned up.
func Formerly(ids ...string) ChangeOption {
	return changeOption(func(s *changeSpec) { s.formerly = append(s.formerly, ids...) })
}

// If makes a sub-handler depend on a condition; without it there is none.
func If(condition bool) ChangeOption {
	return changeOption(func(s *changeSpec) { s.skip = s.skip || !condition })
}
