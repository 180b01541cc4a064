package gopf

import (
	"log/slog"
	"time"

	"gopf.dev/gopf/storage"
)

// Settings has all settings of an operator. [New] sets the defaults, so a zero value
// always means zero, never "use the default". Settings may be changed before
// [Operator.Run] and in startup handlers; later changes have no effect. Invalid
// settings are an error of Run.
//
//	op := gopf.New()
//	op.Settings.Execution.DefaultBackoff = 10 * time.Second
//	op.Settings.Health.Address = ":8080"
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

// ProcessSettings configure how the process ends. They are for package cli:
// [Operator.Run] never ends the process.
type ProcessSettings struct {
	// UltimateExitingTimeout limits the duration of a shutdown. When it is over, the
	// command line kills the process. It is less than the 30 s that Kubernetes gives a
	// pod, so the process can log the handlers that it was waiting for. Default: 25s. 0
	// means no limit.
	UltimateExitingTimeout time.Duration
}

// PersistenceSettings configure where the operator stores its state. If several
// operators handle the same objects, each needs its own finalizer and storages.
type PersistenceSettings struct {
	// Finalizer is the finalizer on objects whose deletion must wait for the operator.
	// Default: "kopf.zalando.org/KopfFinalizerMarker". It must not be empty.
	Finalizer string
	// Progress stores the records of handlers while a change is being handled. Default:
	// [storage.DefaultProgress], annotations in Kopf's format. It must not be nil.
	Progress storage.Progress
	// Base stores the last handled configuration of objects. Default:
	// [storage.DefaultBase], an annotation in Kopf's format. It must not be nil.
	Base storage.Base
	// TrustCopies treats a copy of a handled object as handled. Set it for the first
	// run after objects were restored into a new cluster with their annotations. Copies
	// are recognized only if the base is stored in annotations. Default: false, which
	// handles copies as new objects.
	TrustCopies bool
	// PlainSecrets stores the values of Secrets in the last handled configuration in
	// plain text, as Kopf does. Otherwise each value is stored as a digest, which shows
	// only whether the value has changed. Plain values that Kopf stored are replaced
	// when the operator first sees the Secret, without a handler call. Default: false.
	PlainSecrets bool
	// SecretKey is the key of these digests, for example from a mounted file. It must
	// have at least 16 bytes and be the same in all replicas. nil means that digests
	// are salted only with the UID of the object: a client that can read them can try
	// guesses. When the key changes, digests are recomputed with the next write of each
	// Secret; no handler is called for that. Default: nil.
	SecretKey []byte
}

// ExecutionSettings configure how handlers are called.
type ExecutionSettings struct {
	// DefaultBackoff is the delay before a retry after an error that is neither
	// temporary nor permanent, for handlers without a [Backoff]. Default: 60s. 0 means
	// at once.
	DefaultBackoff time.Duration
	// Lifecycle selects which of the due handlers of an object run next. Default:
	// [ASAP]. It must not be nil.
	Lifecycle Lifecycle
	// MaxWorkers limits the concurrent calls of change and event handlers in the whole
	// operator. Sub-handlers run within the calls of their parents. Daemons and timers
	// do not count. Waiting for a free worker does not count for the [Timeout] of a
	// handler. Default: 0, which means no limit.
	MaxWorkers int
	// ReportLostEdits logs a warning, once for each handler, if the handler modifies
	// Object but does not request the same changes by Patch: such edits are lost. The
	// comparison takes time after each call, so it is meant for development. The flag
	// --dev and package gopftest turn it on. Default: false.
	ReportLostEdits bool
}

// BackgroundSettings configure daemons and timers.
type BackgroundSettings struct {
	// CancellationPolling is the interval of log lines about a daemon that does not
	// stop. Default: 60s. 0 means the default.
	CancellationPolling time.Duration
}

// PostingSettings configure the posting of Kubernetes events.
type PostingSettings struct {
	// Enabled turns posting on. Default: true.
	Enabled bool
	// Loggers also posts log lines as Kubernetes events: those that handlers write with
	// Log, and those about the outcomes of handlers. Lines of event handlers, indices
	// and reviews are not posted. Default: false.
	Loggers bool
	// Level is the minimum level of Kubernetes events and log lines: [Normal] events are
	// at INFO, [Warning] at WARN, [Failure] at ERROR. Events of other types are always
	// posted. Default: [slog.LevelInfo].
	Level slog.Level
	// ReportingComponent is the name of the operator in its Kubernetes events. If it is
	// changed, it is also the field manager of [client.Client.Apply]. Default: "kopf".
	ReportingComponent string
	// ReportingInstance is the name of the process in Kubernetes events. Default:
	// "dev".
	ReportingInstance string
	// EventNamePrefix is the prefix of the names of Kubernetes events. Default:
	// "kopf-event-".
	EventNamePrefix string
}

// QueueingSettings configure how work on objects is queued and stopped.
type QueueingSettings struct {
	// WorkerLimit limits the objects of one resource that are processed concurrently.
	// Default: 0, which means no limit.
	WorkerLimit int
	// ExitTimeout is the time from the start of a shutdown to the cancellation of the
	// contexts of running handlers. Default: 2s. 0 cancels them at once.
	ExitTimeout time.Duration
	// ErrorDelays are the delays of an object after errors outside of its handlers,
	// such as failed writes, storages or filters. The last one repeats. Jitter shortens
	// each by up to a fifth. Default: 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233,
	// 377, 610 s. An empty list means no delay; do not use it on a shared cluster.
	ErrorDelays []time.Duration
}

// ScanningSettings configure the discovery of resources and namespaces.
type ScanningSettings struct {
	// Disabled discovers resources only at startup, and never lists namespaces: those
	// to serve must be given by plain names. The operator then needs no permission to
	// list them. Default: false.
	Disabled bool
}

// WatchingSettings configure watches.
type WatchingSettings struct {
	// ServerTimeout limits the duration of one watch request, enforced by the API
	// server. Default: 0, which means the server's default.
	ServerTimeout time.Duration
	// ClientTimeout limits the duration of one watch request, enforced by the operator,
	// which then watches again. Default: 0, which means no limit.
	ClientTimeout time.Duration
	// InactivityTimeout is the time without data after which the operator reconnects a
	// watch. API servers send a bookmark about once a minute. Default: 70s.
	InactivityTimeout time.Duration
	// ReconnectBackoff is the first delay after a failed watch. It grows to 5 s. Jitter
	// shortens each delay by up to a half. Default: 100ms.
	ReconnectBackoff time.Duration
}

// NetworkingSettings configure requests to the API server.
type NetworkingSettings struct {
	// RequestTimeout limits the duration of one request, except watches. Default: 30s.
	RequestTimeout time.Duration
	// ConnectTimeout limits the time to establish a connection. Default: 10s. 0 means
	// that only the request timeout applies.
	ConnectTimeout time.Duration
	// ErrorDelays are the delays between the attempts of a request that fails because
	// of the network or the server. Each request starts with the first. Jitter shortens
	// each delay by up to a fifth. Delays above 5 s end early when the API server
	// responds to other requests again. Default: 1, 1, 2, 3, 5, 8, 13, 21 s. An empty
	// list means a single attempt.
	ErrorDelays []time.Duration
	// RetryForever repeats the last of the ErrorDelays, instead of giving up after it.
	// Requests then fail only with their context. Default: false.
	RetryForever bool
	// EnforceRetryAfter uses the delay in a Retry-After response even if it is shorter
	// than the operator's own. Default: false.
	EnforceRetryAfter bool
	// TrustEnv uses the variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as kubectl
	// does. A proxy in the kubeconfig is always used. Default: true.
	TrustEnv bool
}
