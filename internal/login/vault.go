package login

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
)

// Config says how an operator logs in.
type Config struct {
	Login Source
	Log   *slog.Logger // slog.Default

	// Jitter shortens the delays between logins that did not help. nil means exact
	// delays.
	Jitter jitter.Source

	// Random chooses among n equals. rand.IntN.
	Random func(n int) int

	// Status, if set, is told whenever the status changes. It must be quick
	// and must not use the vault or the client.
	Status func(Status)
}

// Vault holds the credentials of one operator.
type Vault struct {
	cfg  Config
	wake chan struct{} // holds a token if there is something to look at

	mu      sync.Mutex
	store   *store
	current *item // in use; nil before the first login
	status  Status
	rounds  int           // logins in a row that did not help
	last    time.Time     // end of the last login
	rest    time.Duration // after it, before the next login, if that did not help
}

// New makes an empty vault.
func New(cfg Config) *Vault {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Random == nil {
		cfg.Random = rand.IntN
	}
	return &Vault{cfg: cfg, wake: make(chan struct{}, 1), store: newStore()}
}

// Login logs in for the first time and returns the credentials to begin with.
// The error is a [Error], or that of ctx if it has ended.
func (v *Vault) Login(ctx context.Context) (*Credentials, error) {
	v.cfg.Log.Info("Initial authentication has been initiated.")
	found, err := v.cfg.Login(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("log in: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, &Error{err}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.store.populate(found, time.Now())
	if v.current = v.store.choose(nil, v.cfg.Random); v.current == nil {
		return nil, &Error{}
	}
	v.last = time.Now()
	v.cfg.Log.Info("Initial authentication has finished.")
	creds := v.current.creds
	return &creds, nil
}

// Unauthorized is to be told by the client: see [kube.Options].
func (v *Vault) Unauthorized(cfg *rest.Config, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	used := v.current != nil && v.current.creds.Config == cfg // no others yet
	switch {
	case err == nil && used:
		v.store.accept(v.current)
		v.rounds = 0
	case used:
		v.store.invalidate(v.current)
	case err != nil:
		return
	}
	v.setStatus(err)
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// Namespace is that of the credentials in use.
func (v *Vault) Namespace() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.current == nil {
		return ""
	}
	return v.current.creds.Namespace
}

// Status says whether there are credentials to work with.
func (v *Vault) Status() Status {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.status
}

// setStatus notes why requests wait, or that they do not (nil).
func (v *Vault) setStatus(err error) {
	switch {
	case err == nil && v.status.Err == nil:
		return
	case err == nil:
		v.status = Status{}
	case v.status.Err == nil:
		v.status = Status{Err: err, Since: time.Now()}
	default:
		v.status.Err = err
	}
	if v.cfg.Status != nil {
		v.cfg.Status(v.status)
	}
}

// Run keeps the client supplied until ctx is done. The client must have been
// made with the credentials that Login has returned, and tell Unauthorized.
func (v *Vault) Run(ctx context.Context, client *kube.Client) {
	for ctx.Err() == nil {
		next := v.tend(ctx, client)
		var timer <-chan time.Time
		if !next.IsZero() {
			timer = time.After(time.Until(next))
		}
		select {
		case <-ctx.Done():
		case <-v.wake:
		case <-timer:
		}
	}
}
