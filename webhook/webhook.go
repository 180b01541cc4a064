// Package webhook has the servers that take admission reviews from Kubernetes,
// and the interface for servers and tunnels of your own.
//
//   - [Local] listens with HTTPS: with certificates from files, or with
//     self-signed ones that it makes and renews itself. [K3d], [Minikube] and
//     [DockerDesktop] are for clusters on the same machine, [Auto] finds out
//     which of them it is.
//   - [Service] is for operators inside of the cluster: reached through a Service,
//     with certificates that all replicas share in a Secret.
//
// # Certificates
//
// A new certificate is announced before it is served, and an old one is trusted
// until nobody serves it anymore, so that a renewal is never noticed by anyone.
// Nothing restarts: connections stay open.
package webhook

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"time"
)

// Server receives reviews and has them answered.
type Server interface {
	// Serve runs the server until ctx is done, and returns after the reviews
	// under way are answered. Returning earlier is a failure of the server, and
	// stops the operator.
	//
	// reviews answers POST requests, whose path is the id of a webhook after a
	// slash; a server with a root path of its own must strip it. Headers and the
	// verified certificate of the client are passed on to handlers.
	//
	// announce tells where the server can be reached by the API server, and whom
	// to trust there. It must be called once reviews are served, and again
	// whenever any of that changes. Ids of webhooks are appended to the path. It
	// returns when the cluster's configuration is as announced, if the operator
	// manages it; this may last as long as the cluster cannot be reached, but not
	// longer than ctx.
	Serve(ctx context.Context, reviews http.Handler, announce func(ClientConfig)) error
}

// Func makes a server of a function.
type Func func(ctx context.Context, reviews http.Handler, announce func(ClientConfig)) error

// Serve calls the function.
func (f Func) Serve(ctx context.Context, reviews http.Handler, announce func(ClientConfig)) error {
	return f(ctx, reviews, announce)
}

// ClientConfig tells an API server how to reach a webhook: either by URL or
// through a Service.
type ClientConfig struct {
	URL      string      // of HTTPS, without a query or a fragment
	Service  *ServiceRef // nil if there is a URL
	CABundle []byte      // PEM of whom to trust; none for the authorities that the API server trusts anyway
}

// ServiceRef is a way through a Kubernetes Service.
type ServiceRef struct {
	Namespace, Name string
	Path            string // "" for the root
	Port            int    // of the service; 0 is 443
}

// Environment is what an operator knows about where it runs.
type Environment struct {
	Namespace string // the operator's own; "" if unknown
	Cluster   Cluster
	// Secrets gives access to what is kept in a Secret.
	Secrets func(namespace, name string) KeyStore
	Log     *slog.Logger // nil is slog.Default

	// Certified takes the time at which the certificate being served expires. A server
	// with a certificate calls it for its first one and for each new one. The operator
	// reports the time as a metric. May be nil.
	Certified func(expires time.Time)

	// Random returns random numbers from 0 up to, but not including, 1. A server uses
	// them to shorten the delays of its retries: several replicas should not retry at
	// the same time. nil means exact delays.
	Random func() float64
}

// Binder is a server that wants to know where it runs. The operator calls Bind
// before anything else, and serves with what it returns.
type Binder interface {
	Bind(Environment) Server
}

// Validator is a server that can be set up wrongly. The operator calls Validate before
// it starts anything else.
type Validator interface {
	Validate() error
}

// Cluster is what can be learnt about a cluster in order to recognise it.
type Cluster interface {
	// Certificate is that of the API server.
	Certificate(ctx context.Context) (*x509.Certificate, error)
	// Version is the API server's version, such as "v1.37.1+k3s1".
	Version(ctx context.Context) (string, error)
}
