package gopf

import (
	"errors"
	"time"

	"gopf.dev/gopf/storage"
)

// Settings tune how an operator works. [DefaultSettings] has every default in
// place, so a zero always means zero.
type Settings struct {
	Persistence PersistenceSettings
	Execution   ExecutionSettings
	Background  BackgroundSettings
	Posting     PostingSettings
	Queueing    QueueingSettings
	Watching    WatchingSettings
	Networking  NetworkingSettings
}

// PersistenceSettings say how the state of handling is kept.
type PersistenceSettings struct {
	// Finalizer is what is put on objects whose deletion must wait for the
	// operator.
	Finalizer string
	// Progress keeps what became of handlers while a change is being handled.
	Progress storage.Progress
	// Base keeps what objects were like when they were handled last.
	Base storage.Base
	// PlainSecrets keeps what Secrets were like as it is, as Kopf does. Otherwise
	// their values are kept as digests, which tell what has changed, but not what
	// it was.
	PlainSecrets bool
}

// ExecutionSettings say how handlers are run.
type ExecutionSettings struct {
	// DefaultBackoff is the pause after an error that is neither temporary nor
	// permanent, for handlers without a [Backoff] of their own. 60 s.
	DefaultBackoff time.Duration
	// Lifecycle chooses which of the handlers that are due run next. [ASAP].
	Lifecycle Lifecycle
}

// BackgroundSettings say how daemons and timers are run.
type BackgroundSettings struct {
	// CancellationPolling is the time between log lines about a daemon that does
	// not stop. 60 s, also for 0.
	CancellationPolling time.Duration
}

// PostingSettings say how Kubernetes events are posted.
type PostingSettings struct {
	// Enabled is whether they are at all. true.
	Enabled bool
	// ReportingComponent names the operator in its events. "kopf".
	ReportingComponent string
	// ReportingInstance names the process of the operator. "dev".
	ReportingInstance string
	// EventNamePrefix begins the names of the events themselves. "kopf-event-".
	EventNamePrefix string
}

// QueueingSettings say how work on objects waits and ends.
type QueueingSettings struct {
	// ExitTimeout is how long running handlers have to return when the operator
	// stops, before their contexts are cancelled. 2 s.
	ExitTimeout time.Duration
	// ErrorDelays are the pauses of an object after errors that are not its
	// handlers': those of the cluster, storages or filters. The last one repeats.
	// None at all is without any pause, which the cluster will not like.
	// 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610 s.
	ErrorDelays []time.Duration
}

// WatchingSettings say how changes in the cluster are followed.
type WatchingSettings struct {
	// ServerTimeout is how long the server may keep one watch request open; 0
	// leaves it to the server.
	ServerTimeout time.Duration
	// InactivityTimeout is how long a watch may be silent before it is made
	// anew. 70 s; servers send something every minute.
	InactivityTimeout time.Duration
	// ReconnectBackoff is the first pause after a watch has failed; it grows to
	// 5 s. 100 ms.
	ReconnectBackoff time.Duration
}

// NetworkingSettings say how the API is spoken to.
type NetworkingSettings struct {
	// RequestTimeout is how long one request may take, watches aside. 30 s.
	RequestTimeout time.Duration
	// ErrorBackoffs are the pauses between the attempts of a request that fails
	// for reasons of the network or the server. 1, 1, 2, 3, 5, 8, 13, 21 s.
	ErrorBackoffs []time.Duration
}

// DefaultSettings are the settings of a new operator.
func DefaultSettings() Settings {
	return Settings{
		Persistence: PersistenceSettings{
			Finalizer: "kopf.zalando.org/KopfFinalizerMarker",
			Progress:  storage.DefaultProgress(),
			Base:      storage.DefaultBase(),
		},
		Execution: ExecutionSettings{DefaultBackoff: 60 * time.Second, Lifecycle: ASAP},
		Posting: PostingSettings{
			Enabled: true, ReportingComponent: "kopf", ReportingInstance: "dev", EventNamePrefix: "kopf-event-",
		},
		Background: BackgroundSettings{CancellationPolling: 60 * time.Second},
		Queueing: QueueingSettings{
			ExitTimeout: 2 * time.Second,
			ErrorDelays: seconds(1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610),
		},
		Watching: WatchingSettings{
			InactivityTimeout: 70 * time.Second,
			ReconnectBackoff:  100 * time.Millisecond,
		},
		Networking: NetworkingSettings{
			RequestTimeout: 30 * time.Second,
			ErrorBackoffs:  seconds(1, 1, 2, 3, 5, 8, 13, 21),
		},
	}
}

// check tells what is missing, if anything: the settings may have been made by
// hand rather than from the defaults.
func (s Settings) check() error {
	switch {
	case s.Persistence.Progress == nil, s.Persistence.Base == nil:
		return errors.New("the settings have no storages: begin with gopf.DefaultSettings()")
	case s.Persistence.Finalizer == "":
		return errors.New("the settings have no name for the finalizer: begin with gopf.DefaultSettings()")
	case s.Execution.Lifecycle == nil:
		return errors.New("the settings have no lifecycle: begin with gopf.DefaultSettings()")
	}
	return nil
}

func seconds(ns ...int) []time.Duration {
	ds := make([]time.Duration, len(ns))
	for i, n := range ns {
		ds[i] = time.Duration(n) * time.Second
	}
	return ds
}
