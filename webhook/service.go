package webhook

import (
	"cmp"
	"context"
	"errors"
	"net/http"
)

// Service is a server inside of the cluster, reached through a Kubernetes Service
// that is there already, such as one of a Deployment's manifest. All replicas of
// the operator share one certificate, which they make, keep in a Secret, and renew.
//
// The operator needs the permissions to get, create and patch that Secret.
type Service struct {
	Name      string // of the Service
	Namespace string // of the Service; "" is the operator's own
	Port      int    // of the Service; 0 is 443

	// Secret is the name of the Secret, in the Service's namespace. It is created
	// if it is not there. If empty, it is the Service's with "-webhook" behind.
	Secret string
	// Keys replaces the Secret by something else.
	Keys KeyStore

	// Listen says where and how to listen. Its Addr and Port are those that the
	// Service forwards to; Host has no meaning. With a CertFile or
	// certificates in TLS, the Secret is not used.
	Listen Local
}

// Bind lets it find the operator's namespace and the Secret.
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
		return errors.New("the webhook server does not know the namespace of its Service: set it, or run inside of the cluster")
	}
	e := endpoint{Local: s.Listen, store: s.Keys, source: maker{names: s.names(), lifetime: s.Listen.Lifetime}, describe: s.describe}
	switch {
	case s.Listen.CertFile != "":
		e.source, e.store = s.Listen.files(), &MemoryStore{}
	case s.Listen.ownCertificates():
		e.source, e.store = nil, &MemoryStore{}
	}
	if e.store == nil {
		return errors.New("the webhook server has nowhere to keep its certificates: set Keys")
	}
	return e.serve(ctx, reviews, announce)
}

// Validate returns what is wrong with the configuration; see [Validator].
func (s Service) Validate() error {
	switch {
	case s.Name == "":
		return errors.New("the webhook server has no name of a Service")
	case s.Listen.Insecure:
		return errors.New("webhooks behind a Service must not be Insecure: the API server speaks only HTTPS")
	}
	return s.Listen.Validate()
}

// names are those by which a Service is called; the API server uses the first.
func (s Service) names() []string {
	qualified := s.Name + "." + s.Namespace
	return append([]string{qualified + ".svc", qualified + ".svc.cluster.local", qualified, s.Name}, s.Listen.ExtraNames...)
}

func (s Service) describe(_ int, bundle []byte) ClientConfig {
	return ClientConfig{CABundle: bundle, Service: &ServiceRef{
		Namespace: s.Namespace, Name: s.Name, Path: s.Listen.root(), Port: cmp.Or(s.Port, 443),
	}}
}
