package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/rbac"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

// Config configures a [Control].
type Config struct {
	Client    *kube.Client
	Server    webhook.Server
	Managed   string // the name of the managed configurations; "" means none
	Handlers  handler.Set
	Namespace string // the operator's own namespace; "" means unknown
	Reviewer  ReviewerOptions

	// Own describes the operator's own writes. Run sets its account. nil means that all
	// updates are reviewed.
	Own *Own

	// Stay leaves all webhooks in the managed configurations at the end, because other
	// replicas serve them.
	Stay bool

	// Linger is the time for which reviews are still answered at the end, after the
	// webhooks were removed. API servers and Services need a moment to notice.
	Linger time.Duration

	// Status is called with an error when a managed configuration cannot be written,
	// and with nil when it can be written again. May be nil.
	Status func(error)
	Log    *slog.Logger
}

// ErrNoServer means that there are admission handlers, but no webhook server.
var ErrNoServer = errors.New("there are admission handlers, but no webhook server: set Settings.Admission.Server " +
	"to webhook.Service{…} inside of a cluster, to webhook.Local{…} or webhook.Auto{…} for a cluster that can reach this machine, " +
	"or to a tunnel; with --dev, a local server is the default")

// ChooseServer returns the given server. If it is nil, the result is [webhook.Auto] in
// development, and [ErrNoServer] otherwise.
func ChooseServer(given webhook.Server, dev bool, log *slog.Logger) (webhook.Server, error) {
	switch {
	case given != nil:
		return given, nil
	case dev:
		log.Info("No webhook server is configured; using a local one with a self-signed certificate for development.")
		return webhook.Auto{}, nil
	}
	return nil, ErrNoServer
}

// Control runs the webhook server and manages the webhook configurations.
type Control struct {
	cfg            Config
	reviewer       *Reviewer
	configurations *Configurations // nil means that they are not managed

	once  sync.Once
	ready chan struct{} // closed when the resources are known

	announced   atomic.Bool               // the server has started
	certificate atomic.Pointer[time.Time] // when the server's certificate expires; nil means unknown
}

// New returns a control. Call [Control.Run] to start it. New fails if the declarations
// are invalid or if there is no server.
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

// Absent reports whether a managed configuration did not exist when it was last read.
// The operator then needs the permission to create it.
func (c *Control) Absent(mutating bool) bool {
	return c.configurations != nil && c.configurations.Absent(mutating)
}

// Serves reports whether the webhook server has started. It waits for the resources of the
// cluster, and the caller of [Control.Run] for indices that handlers may need.
func (c *Control) Serves() bool { return c.announced.Load() }

// Load returns the current load of the reviewer.
func (c *Control) Load() Load { return c.reviewer.Load() }

// CertificateExpiry returns when the certificate of the webhook server expires. It is
// zero if the server has none, or does not report it.
func (c *Control) CertificateExpiry() time.Time {
	if expires := c.certificate.Load(); expires != nil {
		return *expires
	}
	return time.Time{}
}

// Discovered sets the resources of the cluster. It must have all of them.
func (c *Control) Discovered(resources []kind.Info) {
	c.reviewer.Discovered(resources)
	if c.configurations != nil {
		c.configurations.Discovered(resources)
	}
	c.once.Do(func() { close(c.ready) })
}

// Run waits for the first call of [Control.Discovered] and then serves until ctx is
// done. At the end, it first removes the webhooks from the cluster and then stops the
// server, so no review remains unanswered. An error means that the server failed, or
// that the webhooks could not be removed.
func (c *Control) Run(ctx context.Context) error {
	select {
	case <-c.ready:
	case <-ctx.Done():
		return nil
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonedTime)
		defer cancel()
		c.reviewer.Wait(ctx)
	}()
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
		unmanage() // without a server, webhooks must not stay in the cluster
		if err == nil {
			err = errors.New("it returned before it was told to stop")
		}
		return errors.Join(fmt.Errorf("the webhook server has ended: %w", err), <-managed)
	case <-ctx.Done():
	}
	c.reviewer.Leave()
	unmanaged := <-managed
	_ = backoff.Sleep(serving, c.cfg.Linger)
	stop()
	return errors.Join(unmanaged, <-served)
}

// abandonedTime limits the wait for handlers whose clients have canceled their reviews. Their
// contexts are canceled as well, so those that continue ignore that.
const abandonedTime = 5 * time.Second

// identifyTime limits the request for the operator's account.
const identifyTime = 10 * time.Second

// identify requests the operator's account from the API server, once. Without it, the
// operator's own writes are reviewed like all others.
func (c *Control) identify(ctx context.Context) {
	if c.cfg.Own == nil {
		return
	}
	own := *c.cfg.Own
	ctx, cancel := context.WithTimeout(ctx, identifyTime)
	defer cancel()
	account, err := rbac.WhoAmI(ctx, c.cfg.Client)
	switch {
	case err != nil:
		c.cfg.Log.Info("The operator's account is unknown, so its own writes are reviewed like all others.", "error", err)
	case account != anonymous:
		own.Account = account
	}
	c.reviewer.Exempt(own)
}

// announce passes the address of the server to the configurations. It returns when they
// have it.
func (c *Control) announce(ctx context.Context, s webhook.ClientConfig) {
	c.announced.Store(true)
	c.cfg.Log.Debug("The webhook server is announced.", "url", s.URL, "service", s.Service)
	if c.configurations != nil {
		c.configurations.Announce(ctx, s)
	}
}
