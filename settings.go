package gopf

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/webhook"
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
	Persistence PersistenceSettings
	Execution   ExecutionSettings
	Posting     PostingSettings
	Queueing    QueueingSettings
	Watching    WatchingSettings
	Networking  NetworkingSettings
	Peering     PeeringSettings
	Election    ElectionSettings
	Admission   AdmissionSettings
	Health      HealthSettings
	Metrics     MetricsSettings
	Insight     InsightSettings

	// Endpoints configures the secure endpoints; see [MetricsSettings] and
	// [InsightSettings].
	Endpoints struct {
		// CertFile is the file of the certificate in PEM, with intermediate certificates. It
		// is read again when it changes. Default: "", which means a self-signed certificate
		// in memory.
		CertFile string
		// KeyFile is the file of the private key in PEM. It is set together with CertFile.
		// Default: "".
		KeyFile string
	}
	// Background configures daemons and timers.
	Background struct {
		// CancellationPolling is the interval of log lines about a daemon that does not
		// stop. Default: 60s. 0 means the default.
		CancellationPolling time.Duration
	}
	// Scanning configures the discovery of resources and namespaces.
	Scanning struct {
		// Disabled discovers resources only at startup, and never lists namespaces: those
		// to serve must be given by plain names. The operator then needs no permission to
		// list them. Default: false.
		Disabled bool
	}
	// Process configures how the process ends. It is for package cli: [Operator.Run]
	// never ends the process.
	Process struct {
		// UltimateExitingTimeout limits the duration of a shutdown. When it is over, the
		// command line kills the process. It is less than the 30 s that Kubernetes gives a
		// pod, so the process can log the handlers that it was waiting for. Default: 25s. 0
		// means no limit.
		UltimateExitingTimeout time.Duration
	}
}

// PersistenceSettings configure where the operator stores its state. If several
// operators handle the same objects, each needs its own finalizer and storages.
type PersistenceSettings struct {
	// Finalizer is the finalizer on objects whose deletion must wait for the operator.
	// Default: "kopf.zalando.org/KopfFinalizerMarker". It must not be empty. [Identity]
	// changes it, and the defaults of both storages.
	Finalizer string
	// FormerFinalizers are former names of the finalizer. An object with one of them
	// waits for the operator as well. The next write to it replaces them with Finalizer.
	// [FormerlyNamed] adds to them. Default: none.
	FormerFinalizers []string
	// Progress stores the records of handlers while a change is being handled. Default:
	// [storage.DefaultProgress], annotations in Kopf's format. It must not be nil.
	Progress storage.Progress
	// Base stores the last handled configuration of objects. Default:
	// [storage.DefaultBase], an annotation in Kopf's format. It must not be nil.
	Base storage.Base
	// StatusKey is the key in the status that has the whole state; see [StateInStatus],
	// which sets it. "." means the first label of the identity. Finalizer, Progress and Base may then be unset: those of the
	// identity are used, or else Kopf's. Progress and Base are the storages of kinds whose
	// status cannot keep the state, and must be in annotations. Default: "", which means
	// that Progress and Base have the state.
	StatusKey string
	// FormerStatusKeys are keys in the status under which an earlier version of the
	// operator kept its state. That state counts, and the next write moves it.
	// [FormerlyNamed] adds to them if the state is in the status. Default: none.
	FormerStatusKeys []string
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
	// Transport returns the transport for all requests to the API server, around the given
	// one, for example to observe them. If it returns another type than the given one, that
	// type should have the method WrappedRoundTripper of client-go. Default: nil, which
	// means the given one.
	Transport func(http.RoundTripper) http.RoundTripper
	// TrustEnv uses the variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as kubectl
	// does. A proxy in the kubeconfig is always used. Default: true.
	TrustEnv bool
}

// PeeringSettings configure how different operators for the same objects take turns:
// the one with the highest priority works, and the others pause. Operators with equal
// priorities all pause. They find each other through a ClusterKopfPeering or
// KopfPeering object, if it exists; see peering.yaml. For replicas of one operator, use
// [ElectionSettings].
type PeeringSettings struct {
	// Name is the name of the peering object. Default: "default".
	Name string
	// Priority is the priority of this operator. It may be negative. Default: 0.
	Priority int
	// Identity identifies this operator in the peering. Default: "", which means the
	// variable POD_ID, or else a name made from user, host and time. Replicas with
	// leader election share one identity, the name of their Lease.
	Identity string
	// Lifetime is the time without renewal after which other operators treat this one
	// as gone. It must be at least 1 s. Default: 60s.
	Lifetime time.Duration
	// Mandatory pauses the operator until the peering object exists. In a namespace that
	// only matches a pattern, a missing object holds back this namespace alone. Default:
	// false, which works without it.
	Mandatory bool
	// Standalone turns peering off. Default: false.
	Standalone bool
	// Stealth keeps the renewals out of the log. Default: false.
	Stealth bool
	// Clusterwide uses a ClusterKopfPeering instead of a KopfPeering in each namespace.
	// Run sets it before the startup handlers: true if the whole cluster is served.
	Clusterwide bool
}

// ElectionSettings configure leader election among the replicas of one operator, by a
// Lease. Only the leader handles objects. A replica that loses the lease cannot write
// before another one may, not even through clients of [client.Client.RESTConfig]. The times
// must satisfy 2 × RetryPeriod <= RenewDeadline < Duration.
type ElectionSettings struct {
	// Enabled turns leader election on. Default: false.
	Enabled bool
	// Name is the name of the Lease, the same for all replicas. Default: "", which
	// means the name of the program.
	Name string
	// Namespace is the namespace of the Lease. Default: "", which means the namespace
	// of the pod or of the kubeconfig's context, or else "default".
	Namespace string
	// Identity identifies this replica. Default: "", which means the same as in
	// [PeeringSettings].
	Identity string
	// Duration is the time without renewal after which another replica may take over.
	// It must be at least 1 s. Default: 15s.
	Duration time.Duration
	// RenewDeadline is the time without a successful renewal after which the leader
	// gives up. It must be less than Duration. Default: 10s.
	RenewDeadline time.Duration
	// RetryPeriod is the interval between attempts to acquire or renew the Lease.
	// Default: 2s.
	RetryPeriod time.Duration
}

// HealthSettings configure the health endpoints. Addresses without a host listen on all
// addresses of the machine. Endpoints with the same address share a listener.
type HealthSettings struct {
	// Liveness is the URL of the liveness endpoint with the results of probes, such as
	// "http://0.0.0.0:8080/healthz"; see [Operator.OnProbe]. Default: "", which means
	// none.
	Liveness string
	// Address is the listen address for /livez and /readyz, such as ":8080". Default:
	// "", which means none.
	Address string
	// Strict makes /readyz fail while some handlers cannot be served, because their
	// resource does not exist, is forbidden, or has an ambiguous name. Default: false,
	// which only reports a warning.
	Strict bool
}

// MetricsSettings configure the metrics and profiles of the operator.
type MetricsSettings struct {
	// Address is the listen address for /metrics, such as ":9090". It may be the
	// address of [HealthSettings]. Default: "", which means none.
	Address string
	// Pprof is the listen address for profiles under /debug/pprof/. Without a host, as
	// in ":6060", it listens on localhost only, because profiles reveal the internals
	// of the program. Default: "", which means none.
	Pprof string
	// Secure serves /metrics over TLS, and only to clients with a bearer token of the cluster.
	// The operator asks the API server for each request whether the user of the token may
	// get the path, as a nonResourceURL; it needs the permissions to create TokenReviews and
	// SubjectAccessReviews. The address must differ from those of endpoints that are not
	// secure, such as health. Default: false.
	Secure bool
	// Collectors are additional metrics of the program, served together with those of
	// the operator. Their names must not start with gopf_, go_ or process_. Default:
	// none.
	Collectors []prometheus.Collector
}

// InsightSettings configure the web page of the operator.
type InsightSettings struct {
	// Address is the listen address of the page, such as ":6080". The page shows rates,
	// latencies and queues, the known objects, and for each object the explanation, the
	// timeline and the children. It only reads. Without a host, it listens on localhost.
	// Unless Secure is set, only loopback addresses are allowed, because the page has no
	// authentication; use kubectl port-forward to reach it in a pod. While the page is on, the operator
	// collects metrics and keeps the latest steps of all objects, in 2 MiB of memory.
	// Default: "", which means none.
	Address string
	// Secure serves the page over TLS, and only to clients with a bearer token of the
	// cluster, as in [MetricsSettings]. A browser sends no such token, so this is for
	// programs that read the data of the page. Default: false.
	Secure bool
}

// AdmissionSettings configure the admission webhooks.
type AdmissionSettings struct {
	// Server receives the reviews of the API server; see package webhook. Run returns
	// an error if there are admission handlers but no server, unless Dev is set.
	// Default: nil.
	Server webhook.Server
	// Managed is the name, such as "auto.example.com", of the
	// ValidatingWebhookConfiguration and the MutatingWebhookConfiguration that the
	// operator creates and keeps up to date. It must be unique in the cluster. Default:
	// "", which means that you manage them.
	Managed string
	// Dev is for development: without a Server, the operator starts a local one with a
	// self-signed certificate, and manages the webhook configurations. Default: false.
	Dev bool
}
