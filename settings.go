package gopf

import (
	"iter"
	"log/slog"
	"slices"
	"time"

	"gopf.dev/gopf/storage"
)

// Settings tune how an operator works. [DefaultSettings] has every default in
// place, so a zero always means zero. They may be changed until the operator runs
// and in startup handlers; later changes have no effect.
type Settings struct {
	Process     ProcessSettings
	Persistence PersistenceSettings
	Execution   ExecutionSettings
	Background  BackgroundSettings
	Posting     PostingSettings
	Queueing    QueueingSettings
	Scanning    ScanningSettings
	Watching    WatchingSettings
	Networking  NetworkingSettings
	Peering     PeeringSettings
	Election    ElectionSettings
	Admission   AdmissionSettings
	Health      HealthSettings
	Metrics     MetricsSettings
}

// ProcessSettings say how the process ends. They are for package cli: an
// operator that is run by [Operator.Run] never ends the process.
type ProcessSettings struct {
	// UltimateExitingTimeout is how long the operator may take to stop before the
	// command line ends the process. It is less than the 30 s that Kubernetes gives a
	// pod, so that the process says what it was waiting for. Default: 25s. 0 means no
	// limit.
	UltimateExitingTimeout time.Duration
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
	// TrustCopies makes a copy of an object that was handled count as handled, too.
	// Set it for the first run after objects were restored into a new cluster with
	// their annotations. Default: false, which handles copies as new objects. Copies
	// are recognized only where the base is kept in annotations.
	TrustCopies bool
	// PlainSecrets keeps the values of Secrets in the last-handled configuration in
	// plain, as Kopf does. Otherwise each value is kept as a digest: it shows whether
	// the value has changed, but not what it was. A configuration with plain values that
	// Kopf left is replaced when the operator first sees the Secret, without a handler
	// call. Default: false.
	PlainSecrets bool
	// SecretKey makes the digests of values of Secrets, for example from a mounted file.
	// It has 16 bytes or more, and is the same for all replicas. nil means that digests
	// are salted with the uid of the object only: a client that can read them can try
	// guesses. When the key changes, digests are made again with the next write of each
	// Secret; no handler is called for that. Default: nil.
	SecretKey []byte
}

// ExecutionSettings say how handlers are run.
type ExecutionSettings struct {
	// DefaultBackoff is the pause after an error that is neither temporary nor
	// permanent, for handlers without a [Backoff] of their own. 60 s.
	DefaultBackoff time.Duration
	// Lifecycle chooses which of the handlers that are due run next. [ASAP].
	Lifecycle Lifecycle
	// MaxWorkers limits the calls of change handlers and event handlers that run at
	// the same time in all; sub-handlers run within the calls of their parents.
	// Daemons and timers are not counted. Waiting for a free worker is not running:
	// it does not count for the [Timeout] of a handler. Default: 0, no limit.
	MaxWorkers int
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
	// Loggers makes events of log lines, too: of those that handlers write with
	// the Log they are given, and of those about their outcomes. Handlers of
	// events, indices and admission are left out. false.
	Loggers bool
	// Level is the least that is posted by [Subject.Info], [Subject.Warn] and from
	// log lines. [slog.LevelInfo].
	Level slog.Level
	// ReportingComponent names the operator in its events. "kopf".
	ReportingComponent string
	// ReportingInstance names the process of the operator. "dev".
	ReportingInstance string
	// EventNamePrefix begins the names of the events themselves. "kopf-event-".
	EventNamePrefix string
}

// QueueingSettings say how work on objects waits and ends.
type QueueingSettings struct {
	// WorkerLimit is how many objects of one resource may be worked on at the same
	// time; 0, the default, is without a limit.
	WorkerLimit int
	// ExitTimeout is how long running handlers have to return when the operator
	// stops, before their contexts are cancelled. 2 s.
	ExitTimeout time.Duration
	// ErrorDelays are the pauses of an object after errors that are not its
	// handlers': those of the cluster, storages or filters. The last one repeats.
	// Jitter shortens each by up to a fifth. An empty list means no pause; do not use
	// it on a shared cluster.
	// Default: 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610 s.
	ErrorDelays []time.Duration
}

// ScanningSettings say how the cluster is searched for what to serve.
type ScanningSettings struct {
	// Disabled makes the operator look for resources at the start only, and never
	// for namespaces: those to be served must be given by plain names. It then
	// needs no permission to list either. false.
	Disabled bool
}

// WatchingSettings say how changes in the cluster are followed.
type WatchingSettings struct {
	// ServerTimeout is how long the server may keep one watch request open; 0
	// leaves it to the server.
	ServerTimeout time.Duration
	// ClientTimeout is after how long a watch is ended by us, to be made anew; 0,
	// the default, is never.
	ClientTimeout time.Duration
	// InactivityTimeout is how long a watch may be silent before it is made
	// anew. 70 s; servers send something every minute.
	InactivityTimeout time.Duration
	// ReconnectBackoff is the first pause after a watch has failed; it grows to
	// 5 s. Jitter shortens each pause by up to a half. Default: 100 ms.
	ReconnectBackoff time.Duration
}

// NetworkingSettings say how the API is spoken to.
type NetworkingSettings struct {
	// RequestTimeout is how long one request may take, watches aside. 30 s.
	RequestTimeout time.Duration
	// ConnectTimeout is how long it may take to establish a connection. 10 s; 0
	// is without a limit but that of the request.
	ConnectTimeout time.Duration
	// ErrorBackoffs are the pauses between the attempts of a request that fails
	// for reasons of the network or the server; see [Pauses] and
	// [EndlessPauses]. Each request starts with the first. Jitter shortens each pause
	// by up to a fifth. Pauses of more than 5 s end early when the cluster answers
	// other requests again. Default: 1, 1, 2, 3, 5, 8, 13, 21 s. nil means a single
	// attempt.
	ErrorBackoffs iter.Seq[time.Duration]
	// EnforceRetryAfter makes the pause that the server asks for replace ours
	// also when it is shorter. false.
	EnforceRetryAfter bool
	// TrustEnv makes the variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY count, as
	// they do for kubectl. A proxy in the kubeconfig counts anyway. true.
	TrustEnv bool
}

// Pauses are the pauses between attempts, as many as are given.
func Pauses(pauses ...time.Duration) iter.Seq[time.Duration] { return slices.Values(pauses) }

// EndlessPauses are pauses between attempts of which the last one repeats, so
// that there is no last attempt.
func EndlessPauses(pauses ...time.Duration) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for _, d := range pauses {
			if !yield(d) {
				return
			}
		}
		for len(pauses) > 0 && yield(pauses[len(pauses)-1]) {
		}
	}
}
