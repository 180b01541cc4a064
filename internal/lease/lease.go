package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/internal/kube"
)

// Config says which lease is meant, and who we are. Begin with
// [DefaultConfig]: here zero means zero, not the default.
type Config struct {
	Client          *kube.Client
	Namespace, Name string // of the Lease, which is made if it does not exist
	Identity        string // unique among all replicas

	// Duration is for how long after a renewal nobody else may take over. In
	// whole seconds, rounded up. 15 s.
	Duration time.Duration

	// RenewDeadline is for how long after the last renewal the leader works.
	// It must be shorter than Duration: the rest is for writes that are on their
	// way. 10 s.
	RenewDeadline time.Duration

	// RetryPeriod is the pause between renewals, and between looks at the
	// lease of another one, less up to a fifth of it at random. 2 s.
	RetryPeriod time.Duration

	Log *slog.Logger
}

// DefaultConfig has the defaults named at the fields.
func DefaultConfig(client *kube.Client, namespace, name, identity string) Config {
	return Config{
		Client: client, Namespace: namespace, Name: name, Identity: identity,
		Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Log: slog.Default(),
	}
}

func (c Config) check() error {
	switch {
	case c.Namespace == "" || c.Name == "" || c.Identity == "":
		return fmt.Errorf("the lease needs a namespace, a name and an identity, got %q, %q and %q", c.Namespace, c.Name, c.Identity)
	case c.RetryPeriod <= 0:
		return errors.New("the retry period of the lease must be positive")
	case c.RenewDeadline < 2*c.RetryPeriod:
		return fmt.Errorf("the renew deadline of the lease, %v, must be twice the retry period, %v, at least: one renewal may fail", c.RenewDeadline, c.RetryPeriod)
	case c.Duration <= c.RenewDeadline:
		return fmt.Errorf("the duration of the lease, %v, must be longer than its renew deadline, %v: else two replicas might work", c.Duration, c.RenewDeadline)
	}
	return nil
}

// Elector takes part in the election of one lease.
type Elector struct {
	Config
	client *kube.Client

	until  atomic.Pointer[time.Time] // nil if we do not lead
	holder atomic.Pointer[string]

	// What follows belongs to the goroutine of Run.
	seen     sight
	acquired time.Time // what we have written as the beginning of our term, or tried to
	unsure   bool      // a write of ours may still take effect, or has
	told     map[string]bool
}

// New makes an elector; Run lets it take part.
func New(c Config) (*Elector, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Duration = (c.Duration + time.Second - 1).Truncate(time.Second)
	c.Log = c.Log.With("lease", c.Namespace+"/"+c.Name, "identity", c.Identity)
	// Requests have little time, and pauses of our own.
	return &Elector{Config: c, client: c.Client.WithBackoffs(nil), told: map[string]bool{}}, nil
}

// Until is the time until which this replica may write; it moves on while it
// leads, and is zero if it does not. Requests must be ended by then. It may be
// called from anywhere.
func (e *Elector) Until() time.Time {
	until := e.until.Load()
	if until == nil {
		return time.Time{}
	}
	// The monotonic clock may have stood still while the machine slept, and the
	// other one may have been set back.
	now := time.Now()
	if !now.Before(*until) || !now.Round(0).Before(until.Round(0)) {
		return time.Time{}
	}
	return *until
}

// Holder is the identity that the lease was last seen with; "" if nobody had
// it, or if it was not seen yet. It may be called from anywhere.
func (e *Elector) Holder() string {
	if h := e.holder.Load(); h != nil {
		return *h
	}
	return ""
}

// LostError is why the work of a leader is cancelled.
type LostError struct {
	Holder string // who has the lease now, if that is known
	Err    error  // why it could not be renewed, if that is the reason
}

func (e *LostError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the lease could not be renewed in time: %v", e.Err)
	}
	return fmt.Sprintf("the lease was taken by %q", e.Holder)
}

func (e *LostError) Unwrap() error { return e.Err }

// Run takes part in the election until ctx is done. Whenever this replica is
// elected, lead is called; its context ends when ctx does, or with a
// [LostError] as the cause when the lease is lost. It must return soon then:
// with ctx done, the lease is kept until it does, and released afterwards;
// when it was lost, this replica is no candidate until it does. If lead
// returns before it must, the lease is released and Run ends.
func (e *Elector) Run(ctx context.Context, lead func(context.Context)) {
	requests, cancel := outlive(ctx, farewell)
	defer cancel()
	for e.acquire(ctx, requests) {
		if e.serve(ctx, lead) {
			break
		}
	}
	e.release(context.WithoutCancel(ctx))
}

// outlive makes a context that ends some time later than another one.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(by, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() { stop(); cancel() }
}
