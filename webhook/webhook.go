// Package webhook provides servers for validating and mutating admission webhooks, and
// the interface for your own servers and tunnels.
//
//   - [Local] listens with HTTPS: with certificates from files, or with self-signed
//     ones that it creates and renews itself. [K3d], [Minikube] and [DockerDesktop] are
//     for clusters on the same machine; [Auto] detects which of them it is.
//   - [Service] is for operators inside the cluster. It is reached through a Kubernetes
//     Service, and its replicas share one certificate in a Secret.
//
// # Certificates
//
// A new certificate is announced to the API server before it is served, and the old one
// stays trusted until no replica serves it. Requests therefore never fail because of a
// renewal. Nothing restarts, and connections stay open.
package webhook

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"time"
)

// Server receives admission reviews and passes them to the operator.
type Server interface {
	// Serve runs the server until ctx is done, and returns when the reviews in progress
	// are complete. If it returns earlier, the server has failed, and the operator stops.
	//
	// reviews handles POST requests. Their path must be a slash and the id of a webhook, so
	// a server with a root path must strip it. Handlers can see the headers and the
	// verified certificate of the client.
	//
	// Serve must call announce once reviews can be served, and again when the address or
	// the CA changes. Webhook ids are appended to the path of the address. announce
	// returns when the webhook configurations in the cluster are updated, if the operator
	// manages them. It blocks while the cluster is unreachable, at most until ctx is done.
	Serve(ctx context.Context, reviews http.Handler, announce func(ClientConfig)) error
}

// Func adapts a function to a [Server].
type Func func(ctx context.Context, reviews http.Handler, announce func(ClientConfig)) error

// Serve implements [Server].
func (f Func) Serve(ctx context.Context, reviews http.Handler, announce func(ClientConfig)) error {
	return f(ctx, reviews, announce)
}

// ClientConfig defines how the API server reaches a webhook: by URL or through a Service.
type ClientConfig struct {
	URL      string      // HTTPS URL without a query or a fragment
	Service  *ServiceRef // nil means that URL is used
	CABundle []byte      // CA certificates in PEM; empty means the CAs that the API server trusts by default
}

// ServiceRef refers to a Kubernetes Service.
type ServiceRef struct {
	Namespace, Name string
	Path            string // empty means the root
	Port            int    // port of the Service; 0 means 443
}

// Environment describes where an operator runs.
type Environment struct {
	Namespace string // namespace of the operator; empty means unknown
	Cluster   Cluster
	// Secrets returns a KeyStore that uses a Secret. May be nil.
	Secrets func(namespace, name string) KeyStore
	Log     *slog.Logger // nil means slog.Default()

	// Certified receives the expiry time of the certificate being served. A server calls
	// it for its first certificate and for each new one. The operator reports the time as
	// a metric. May be nil.
	Certified func(expires time.Time)

	// Random returns random numbers from 0 up to, but not including, 1. A server uses
	// them to shorten the delays of its retries: several replicas should not retry at
	// the same time. nil means exact delays.
	Random func() float64
}

// Binder is implemented by servers that need the [Environment]. The operator calls Bind
// before anything else, and runs the returned server.
type Binder interface {
	Bind(Environment) Server
}

// Validator is implemented by servers that check their configuration. The operator calls
// Validate before it starts anything else. The error describes the mistake.
type Validator interface {
	Validate() error
}

// Cluster provides the properties of a cluster by which [Auto] recognizes it.
type Cluster interface {
	// Certificate returns the certificate of the API server.
	Certificate(ctx context.Context) (*x509.Certificate, error)
	// Version returns the version of the API server, such as "v1.37.1+k3s1".
	Version(ctx context.Context) (string, error)
}
