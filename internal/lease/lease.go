package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/loglimit"
)

// Config identifies the lease and this replica. Start with [DefaultConfig]: a zero
// field means zero, not the default.
type Config struct {
	Client          *kube.Client
	Namespace, Name string // of the Lease, which is created if it does not exist
	Identity        string // unique among all replicas

	// Duration is the time after a renewal during which no other replica may take over.
	// It is rounded up to whole seconds. Default: 15s.
	Duration time.Duration

	// RenewDeadline is the time after its last renewal during which the leader works.
	// It must be shorter than Duration; the difference is for writes in flight.
	// Default: 10s.
	RenewDeadline time.Duration

	// RetryPeriod is the interval of renewals, and of reading the lease while another
	// replica holds it, minus up to 20 % jitter. Default: 2s.
	RetryPeriod time.Duration

	Log *slog.Logger
}

// DefaultConfig returns the defaults that are documented at the fields.
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
		return fmt.Errorf("the lease requires a namespace, a name and an identity, got %q, %q and %q", c.Namespace, c.Name, c.Identity)
	case c.RetryPeriod <= 0:
		return errors.New("the retry period of the lease must be positive")
	case c.RenewDeadline < 2*c.RetryPeriod:
		return fmt.Errorf("the renew deadline of the lease, %v, must be at least twice the retry period, %v: one renewal may fail", c.RenewDeadline, c.RetryPeriod)
	case c.Duration <= c.RenewDeadline:
		return fmt.Errorf("the duration of the lease, %v, must be longer than its renew deadline, %v: otherwise two replicas might work", c.Duration, c.RenewDeadline)
	}
	return nil
}

// Elector takes part in the election for one lease.
type Elector struct {
	Config
	client *kube.Client

	until  atomic.Pointer[time.Time] // nil means that this replica is not the leader
	holder atomic.Pointer[string]

	// The fields below belong to the goroutine of Run.
	seen     sight
	acquired time.Time             // start of our term, as we wrote it or tried to
	unsure   bool                  // a write of ours may have taken effect, or still may
	told     loglimit.Once[string] // kinds of failures since the last success
}

// New returns an elector. Run starts it.
func New(c Config) (*Elector, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Duration = (c.Duration + time.Second - 1).Truncate(time.Second)
	c.Log = c.Log.With("lease", c.Namespace+"/"+c.Name, "identity", c.Identity)
	// Requests must be fast, and Run has its own pauses.
	return &Elector{Config: c, client: c.Client.WithBackoffs(nil)}, nil
}

// Until returns the time until which this replica may write. It advances while the
// replica is the leader, and is zero otherwise. Requests must end by then. It is safe
// for concurrent use.
func (e *Elector) Until() time.Time {
	until := e.until.Load()
	if until == nil {
		return time.Time{}
	}
	// The monotonic clock may have stopped while the machine was asleep, and the wall
	// clock may have been set back.
	now := time.Now()
	if !now.Before(*until) || !now.Round(0).Before(until.Round(0)) {
		return time.Time{}
	}
	return *until
}

// Holder returns the identity of the last known holder. It is empty if the lease was
// free or was not read yet. It is safe for concurrent use.
func (e *Elector) Holder() string {
	if h := e.holder.Load(); h != nil {
		return *h
	}
	return ""
}

// LostError is the cause of canceling the work of a leader.
type LostError struct {
	Holder string // the new holder, if known
	Err    error  // the error of the renewal, if that was the reason
}

func (e *LostError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the lease could not be renewed in time: %v", e.Err)
	}
	return fmt.Sprintf("the lease was taken by %q", e.Holder)
}

func (e *LostError) Unwrap() error { return e.Err }

// Run takes part in the election until ctx ends. It calls lead whenever this replica is
// elected. The context of lead ends with ctx, or with a [LostError] as the cause when
// the lease is lost. Then lead must return soon. If ctx has ended, the lease is kept
// until lead returns, and released afterwards. If the lease was lost, this replica is
// not a candidate until lead returns. If lead returns earlier, the lease is released
// and Run ends.
func (e *Elector) Run(ctx context.Context, lead func(context.Context)) {
	requests, cancel := outlive(ctx, releaseLimit)
	defer cancel()
	for e.acquire(ctx, requests) {
		if e.serve(ctx, lead) {
			break
		}
	}
	e.release(context.WithoutCancel(ctx))
}

// outlive returns a context that ends some time after ctx.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(by, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() { stop(); cancel() }
}
