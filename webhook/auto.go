package webhook

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Auto is a [Local] server that detects which local cluster it serves (k3d, minikube,
// Docker Desktop), and sets Local.Host to the name under which the cluster reaches this
// machine.
type Auto struct {
	Local Local
	// Otherwise is the server for clusters that are not recognized, for example a tunnel.
	// nil means Local, with its Host unchanged.
	Otherwise Server
	// Cluster is the cluster to detect. nil means the operator's cluster.
	Cluster Cluster
}

// Bind implements [Binder].
func (a Auto) Bind(e Environment) Server {
	if a.Cluster == nil {
		a.Cluster = e.Cluster
	}
	a.Local.bind(e)
	if b, ok := a.Otherwise.(Binder); ok {
		a.Otherwise = b.Bind(e)
	}
	return a
}

// Serve serves reviews until ctx is done; see [Server]. It returns an error if the API
// server does not report its version.
func (a Auto) Serve(ctx context.Context, reviews http.Handler, announce func(ClientConfig)) error {
	host, err := a.detect(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("detect the type of the cluster: %w", err)
	case host != "":
		a.Local = a.Local.reachedAs(host)
	case a.Otherwise != nil:
		return a.Otherwise.Serve(ctx, reviews, announce)
	}
	return a.Local.Serve(ctx, reviews, announce)
}

// Validate implements [Validator].
func (a Auto) Validate() error {
	if err := a.Local.Validate(); err != nil {
		return err
	}
	if v, ok := a.Otherwise.(Validator); ok {
		return v.Validate()
	}
	return nil
}

func (a Auto) detect(ctx context.Context) (host string, err error) {
	if a.Cluster == nil {
		return "", errors.New("no cluster is set; set Auto.Cluster, or let an operator run the server")
	}
	// The certificate may be unavailable, for example behind a proxy.
	if cert, err := a.Cluster.Certificate(ctx); err == nil {
		if host := Detect(cert, ""); host != "" {
			return host, nil
		}
	}
	version, err := a.Cluster.Version(ctx)
	return Detect(nil, version), err
}

// Detect recognizes local clusters by the certificate of the API server, which may be nil,
// and by its version. It returns the host name under which the cluster reaches the machine
// that it runs on. An empty host means that the cluster is not recognized.
func Detect(cert *x509.Certificate, version string) (host string) {
	if cert != nil {
		subject, issuer := cert.Subject, cert.Issuer
		switch {
		case subject.CommonName == "k3s", slices.Contains(subject.Organization, "k3s"), strings.HasPrefix(issuer.CommonName, "k3s-"):
			return HostK3d
		case subject.CommonName == "minikube", issuer.CommonName == "minikubeCA":
			return HostMinikube
		case slices.Contains(cert.DNSNames, "docker-for-desktop"):
			return HostDockerDesktop
		}
	}
	if strings.Contains(version, "+k3s") {
		return HostK3d
	}
	return ""
}
