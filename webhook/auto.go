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

// Auto is a [Local] server for whatever local cluster it is: its Host is found out.
type Auto struct {
	Local Local
	// Otherwise is the server for clusters that are not recognised, such as a
	// tunnel. Nil is Local as it is.
	Otherwise Server
	// Cluster is where to look; nil is the operator's.
	Cluster Cluster
}

// Bind lets it look at the operator's cluster.
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

// Serve serves reviews until ctx is done; see [Server].
func (a Auto) Serve(ctx context.Context, reviews http.Handler, announce func(ClientConfig)) error {
	host, err := a.detect(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("find out what cluster it is: %w", err)
	case host != "":
		a.Local = a.Local.reachedAs(host)
	case a.Otherwise != nil:
		return a.Otherwise.Serve(ctx, reviews, announce)
	}
	return a.Local.Serve(ctx, reviews, announce)
}

// Validate returns what is wrong with the configuration; see [Validator].
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
		return "", errors.New("no cluster is given")
	}
	// A certificate may be out of reach, behind a proxy for example.
	if cert, err := a.Cluster.Certificate(ctx); err == nil {
		if host := Detect(cert, ""); host != "" {
			return host, nil
		}
	}
	version, err := a.Cluster.Version(ctx)
	return Detect(nil, version), err
}

// Detect recognises local clusters by the certificate of the API server, which may
// be nil, and by its version. It returns the name by which the cluster reaches the
// machine that it runs on; "" if it is not known.
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
