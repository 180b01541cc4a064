package webhook

import (
	"cmp"
	"context"
	"errors"
	"net/http"
)

// Service is a server inside the cluster, reached through an existing Kubernetes Service,
// usually from the manifest of the operator's Deployment. All replicas of the operator
// share one self-signed certificate. They create it, store it in a Secret, and renew it.
//
// The operator needs RBAC permissions to get, create and patch this Secret.
type Service struct {
	Name      string // name of the Service; required
	Namespace string // namespace of the Service; empty means that of the operator
	Port      int    // port of the Service; 0 means 443

	// Secret is the name of the Secret, in the namespace of the Service. The operator
	// creates it if it does not exist. Default: the name of the Service plus "-webhook".
	Secret string
	// Keys replaces the Secret by another store. May be nil.
	Keys KeyStore

	// Listen configures the listener. Its Addr and Port must be the target of the Service;
	// its Host is ignored. If it has a CertFile or certificates in TLS, the Secret is not
	// used.
	Listen Local
}

// Bind implements [Binder].
func (s Service) Bind(e Environment) Server {
	s.Namespace = cmp.Or(s.Namespace, e.Namespace)
	if s.Keys == nil && e.Secrets != nil {
		s.Keys = e.Secrets(s.Namespace, cmp.Or(s.Secret, s.Name+"-webhook"))
	}
	s.Listen.bind(e)
	return s
}

// Serve serves reviews until ctx is done; see [Server].
func (s Service) Serve(ctx context.Context, reviews http.Handler, announce func(ClientConfig)) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.Namespace == "" {
		return errors.New("invalid webhook server: the namespace of the Service is unknown; set Namespace, or run the operator inside the cluster")
	}
	e := endpoint{Local: s.Listen, store: s.Keys, source: maker{names: s.names(), lifetime: s.Listen.Lifetime}, describe: s.describe}
	switch {
	case s.Listen.CertFile != "":
		e.source, e.store = s.Listen.files(), &MemoryStore{}
	case s.Listen.ownCertificates():
		e.source, e.store = nil, &MemoryStore{}
	}
	if e.store == nil {
		return errors.New("invalid webhook server: there is no store for certificates; set Keys")
	}
	return e.serve(ctx, reviews, announce)
}

// Validate implements [Validator].
func (s Service) Validate() error {
	switch {
	case s.Name == "":
		return errors.New("invalid webhook server: set the Name of the Service")
	case s.Listen.Insecure:
		return errors.New("invalid webhook server: a Service cannot be Insecure, because API servers use only HTTPS")
	}
	return s.Listen.Validate()
}

// names returns the DNS names of the Service. The API server uses the first one.
func (s Service) names() []string {
	qualified := s.Name + "." + s.Namespace
	return append([]string{qualified + ".svc", qualified + ".svc.cluster.local", qualified, s.Name}, s.Listen.ExtraNames...)
}

func (s Service) describe(_ int, bundle []byte) ClientConfig {
	return ClientConfig{CABundle: bundle, Service: &ServiceRef{
		Namespace: s.Namespace, Name: s.Name, Path: s.Listen.root(), Port: cmp.Or(s.Port, 443),
	}}
}
