package gopf

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gopf.dev/gopf/webhook"
)

// PeeringSettings say how operators for the same objects take turns: the one
// with the highest priority works, the others pause. They find each other
// through an object of the kind ClusterKopfPeering or KopfPeering, if the
// cluster has it; see peering.yaml.
type PeeringSettings struct {
	// Name is that of the object. "default".
	Name string
	// Priority is this operator's; it may be negative. 0.
	Priority int
	// Identity tells the operators apart. "", the default, is the variable POD_ID
	// or else made of the user, the host and the time. Replicas with an election
	// are one operator here, named after their Lease.
	Identity string
	// Lifetime is after how long the others take this operator for gone if it
	// gives no sign of life. 60 s.
	Lifetime time.Duration
	// Mandatory makes the operator pause until it has found the object. false: it
	// works without if there is none.
	Mandatory bool
	// Standalone makes the operator neither look for others nor tell of itself.
	// false.
	Standalone bool
	// Stealth leaves the signs of life out of the log. false.
	Stealth bool
	// Clusterwide chooses ClusterKopfPeering over KopfPeering in each namespace. It
	// is set when the operator starts: true if the whole cluster is served.
	Clusterwide bool
}

// ElectionSettings say how replicas of one operator choose the one that works,
// by a Lease as other controllers do. Unlike with peering, all are equal, and
// whoever loses the lease cannot write anymore, not even through clients of
// [Client.RESTConfig].
type ElectionSettings struct {
	// Enabled is whether there is an election. false.
	Enabled bool
	// Name is that of the Lease, the same for all replicas. "" is the name of the
	// program.
	Name string
	// Namespace is that of the Lease. "" is the namespace of the pod or of the
	// kubeconfig's context, or else "default".
	Namespace string
	// Identity tells the replicas apart. "" is as in [PeeringSettings].
	Identity string
	// Duration is after how long the others may take over from one that gives no
	// sign of life. 15 s.
	Duration time.Duration
	// RenewDeadline is after how long without success the one that works gives
	// up; it must be less than Duration. 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the time between attempts. 2 s.
	RetryPeriod time.Duration
}

// HealthSettings say where the operator tells how it is.
type HealthSettings struct {
	// Liveness is a URL such as http://0.0.0.0:8080/healthz under which the results
	// of probes are served. "", the default, is nowhere.
	Liveness string
	// Address, such as ":8080", is where /livez and /readyz are served. "", the
	// default, is nowhere.
	Address string
	// Strict makes the operator not ready while it cannot serve all of its
	// handlers: because the cluster does not have a resource, does not allow it,
	// or has several that are meant. false: these are told, no more.
	Strict bool
}

// MetricsSettings say where the operator tells what it does, in numbers.
type MetricsSettings struct {
	// Address, such as ":9090", is where /metrics is served. It may be that of
	// [HealthSettings]. "", the default, is nowhere.
	Address string
	// Pprof is the address where profiles of the program are served under
	// /debug/pprof/. Without a host, as ":6060", it is localhost: profiles show the
	// insides of the program. Default: "", which means nowhere.
	Pprof string
	// Collectors are metrics of the program's own, served beside those of the
	// operator. Their names must not begin with gopf_, go_ or process_. Default: none.
	Collectors []prometheus.Collector
}

// AdmissionSettings say how the cluster gets to ask the operator before it grants
// requests.
type AdmissionSettings struct {
	// Server is what the cluster connects to; see package webhook. It must be set
	// if there are handlers of reviews.
	Server webhook.Server
	// Managed is the name, such as "auto.example.com", of the
	// ValidatingWebhookConfiguration and the MutatingWebhookConfiguration that the
	// operator makes and keeps up to date. "", the default, leaves that to others.
	Managed string
	// Dev makes an operator without a Server use one on this machine, with a
	// certificate of its own making, and manage the configurations: for development.
	// false.
	Dev bool
}
