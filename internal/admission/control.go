package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/internal/access"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

// Config is all that admission control needs.
type Config struct {
	Client    *kube.Client
	Server    webhook.Server
	Managed   string // the name of the managed configurations; "" if there are none
	Handlers  registry.Set
	Namespace string // the operator's own; "" if unknown
	Reviewer  ReviewerOptions

	// Own is what the operator writes on objects for itself. Its account is found out
	// when Run begins. nil means that all updates are reviewed.
	Own *Own

	// Stay leaves all webhooks in the managed configurations at the end, because other
	// replicas serve them.
	Stay bool

	// Linger is for how long reviews are still answered at the end, after the
	// cluster was told that we are not there anymore: API servers notice it a
	// little later, and so do Services that lead to a pod that stops.
	Linger time.Duration

	// Status, if set, is told when the managed configurations cannot be written,
	// and (nil) when they can again.
	Status func(error)
	Log    *slog.Logger
}

// ErrNoServer says that there is no webhook server although there are handlers
// that need one.
var ErrNoServer = errors.New("there are admission handlers, but no webhook server: set Settings.Admission.Server " +
	"to webhook.Service{…} inside of a cluster, to webhook.Local{…} or webhook.Auto{…} for a cluster that can reach this machine, " +
	"or to a tunnel; with --dev, a local server is used by itself")

// ChooseServer is the server to use: the given one, or in development, without
// one, a local one with a self-signed certificate.
func ChooseServer(given webhook.Server, dev bool, log *slog.Logger) (webhook.Server, error) {
	switch {
	case given != nil:
		return given, nil
	case dev:
		log.Info("No webhook server is configured: a local one with a self-signed certificate is used for development.")
		return webhook.Auto{}, nil
	}
	return nil, ErrNoServer
}

// Control answers reviews, and makes the cluster ask for them.
type Control struct {
	cfg            Config
	reviewer       *Reviewer
	configurations *Configurations // nil if they are not managed

	once  sync.Once
	ready chan struct{} // closed when the resources are known

	certificate atomic.Pointer[time.Time] // when the server's certificate expires; nil if unknown
}

// New makes an admission control; Run starts it.
func New(cfg Config) (*Control, error) {
	if err := Check(cfg.Handlers, cfg.Managed); err != nil {
		return nil, err
	}
	if cfg.Server == nil {
		return nil, ErrNoServer
	}
	c := &Control{ready: make(chan struct{})}
	if b, ok := cfg.Server.(webhook.Binder); ok {
		cfg.Server = b.Bind(webhook.Environment{
			Namespace: cfg.Namespace, Log: cfg.Log, Cluster: cluster{cfg.Client},
			Random: cfg.Client.Jitter(), Certified: func(expires time.Time) { c.certificate.Store(&expires) },
			Secrets: func(namespace, name string) webhook.KeyStore { return NewSecretStore(cfg.Client, namespace, name) },
		})
	}
	c.cfg, c.reviewer = cfg, NewReviewer(cfg.Handlers, cfg.Reviewer)
	if cfg.Managed != "" {
		c.configurations = NewConfigurations(cfg.Client, ConfigurationsOptions{
			Managed: cfg.Managed, Handlers: cfg.Handlers, Namespace: cfg.Namespace, Log: cfg.Log, Status: cfg.Status, Stay: cfg.Stay,
			Jitter: cfg.Client.Jitter(),
		})
		if cfg.Own != nil {
			c.configurations.Own = c.reviewer.Own
		}
	}
	return c, nil
}

// Absent reports whether a managed configuration was found not to exist, so that it
// must be created.
func (c *Control) Absent(mutating bool) bool {
	return c.configurations != nil && c.configurations.Absent(mutating)
}

// Load returns how busy the reviewer is now.
func (c *Control) Load() Load { return c.reviewer.Load() }

// CertificateExpiry returns when the certificate of the webhook server expires. It is
// zero if the server has none, or does not report it.
func (c *Control) CertificateExpiry() time.Time {
	if expires := c.certificate.Load(); expires != nil {
		return *expires
	}
	return time.Time{}
}

// Discovered tells which resources the cluster has now: all of them.
func (c *Control) Discovered(resources []kind.Info) {
	c.reviewer.Discovered(resources)
	if c.configurations != nil {
		c.configurations.Discovered(resources)
	}
	c.once.Do(func() { close(c.ready) })
}

// Run serves from when the resources are known until ctx is done. At the end, the
// cluster is told first, and the server is stopped after that, so that nobody asks
// in vain. An error means that the server has failed, or that the cluster could not
// be told.
func (c *Control) Run(ctx context.Context) error {
	select {
	case <-c.ready:
	case <-ctx.Done():
		return nil
	}
	c.identify(ctx)
	managing, unmanage := context.WithCancel(ctx)
	defer unmanage()
	managed := make(chan error, 1)
	go func() {
		if c.configurations == nil {
			managed <- nil
			return
		}
		managed <- c.configurations.Run(managing)
	}()

	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	served := make(chan error, 1)
	go func() {
		served <- c.cfg.Server.Serve(serving, c.reviewer, func(s webhook.ClientConfig) { c.announce(managing, s) })
	}()

	select {
	case err := <-served:
		unmanage() // what nobody answers should not be asked
		if err == nil {
			err = errors.New("it returned before it was told to")
		}
		return errors.Join(fmt.Errorf("the webhook server has ended: %w", err), <-managed)
	case <-ctx.Done():
	}
	c.reviewer.Leave()
	unmanaged := <-managed
	sleep(serving, c.cfg.Linger, nil)
	stop()
	return errors.Join(unmanaged, <-served)
}

// identifyTime is how long the API server may take to tell the operator's account.
const identifyTime = 10 * time.Second

// identify asks the API server once for the operator's account. Without it, the
// operator's own writes are reviewed like those of others.
func (c *Control) identify(ctx context.Context) {
	if c.cfg.Own == nil {
		return
	}
	own := *c.cfg.Own
	ctx, cancel := context.WithTimeout(ctx, identifyTime)
	defer cancel()
	account, err := access.WhoAmI(ctx, c.cfg.Client)
	switch {
	case err != nil:
		c.cfg.Log.Info("The operator's account is not known; its own writes are reviewed, too.", "error", err)
	case account != anonymous:
		own.Account = account
	}
	c.reviewer.Exempt(own)
}

func (c *Control) announce(ctx context.Context, s webhook.ClientConfig) {
	c.cfg.Log.Debug("The webhook server is announced.", "url", s.URL, "service", s.Service)
	if c.configurations != nil {
		c.configurations.Announce(ctx, s)
	}
}
