package gopf

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gopf.dev/gopf/webhook"
)

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
	// Mandatory pauses the operator until the peering object exists. Default: false,
	// which works without it.
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
	// Collectors are additional metrics of the program, served together with those of
	// the operator. Their names must not start with gopf_, go_ or process_. Default:
	// none.
	Collectors []prometheus.Collector
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
