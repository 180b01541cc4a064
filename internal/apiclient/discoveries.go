package apiclient

import (
	"context"
	"errors"
	"sync"
	"time"

	"gopf.dev/gopf/internal/kube"
)

// Discoveries lets all clients of an operator share the discoveries of their lookups. A
// tenant can name any number of kinds that do not exist, and each discovery reads the
// resources of the whole cluster.
//
// Lookups at the same time share one discovery, and its result is used for the lookups of the
// next [lasting]. An error is not kept. It is safe for concurrent use.
type Discoveries struct {
	// Discover runs a discovery of all groups.
	Discover func(ctx context.Context, groups ...string) (kube.Discovery, error)
	// Stopping is closed when lookups must no longer wait for the time of the next discovery.
	// nil means never.
	Stopping <-chan struct{}

	mu   sync.Mutex
	last *attempt // nil means that the next lookup runs a discovery
}

// lasting is the time for which the result of a discovery is used, from its start. It is the
// least time between two discoveries, unless one fails or the resources of the cluster change.
const lasting = 10 * time.Second

// attempt is a discovery that runs, or its result.
type attempt struct {
	began  time.Time
	users  int // lookups that wait for it
	cancel context.CancelFunc
	done   chan struct{} // closed at the end

	found kube.Discovery // set before done is closed, as is err
	err   error
}

// after returns the result of a discovery that began at the given time or later, but at most
// [lasting] ago, with its start. It may wait for the time of the next discovery, except with a
// zero time. The wait counts as a pause; see [kube.WithPauses].
func (d *Discoveries) after(ctx context.Context, since time.Time) (found kube.Discovery, began time.Time, err error) {
	for {
		a := d.join()
		if err := d.await(ctx, a); err != nil {
			return kube.Discovery{}, time.Time{}, err
		}
		if !a.began.Before(since) {
			return a.found, a.began, nil
		}
		if err := d.sleep(ctx, time.Until(a.began.Add(lasting))); err != nil {
			return kube.Discovery{}, time.Time{}, err
		}
	}
}

// sleep waits for the time of the next discovery.
func (d *Discoveries) sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	return kube.Pause(ctx, func() error {
		select {
		case <-timer.C:
			return nil
		case <-d.Stopping:
			return errStopping
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

var errStopping = errors.New("the operator is stopping and does not wait for the next discovery")

// Forget lets the next lookup run a discovery. It is for changes of the resources of the cluster.
func (d *Discoveries) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = nil
}

// join returns the discovery that a lookup uses now. The caller must call await once.
func (d *Discoveries) join() *attempt {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil || time.Since(d.last.began) >= lasting {
		// The values of the context of a lookup are not for others, nor is its end.
		ctx, cancel := context.WithCancel(context.Background())
		d.last = &attempt{began: time.Now(), cancel: cancel, done: make(chan struct{})}
		go d.run(ctx, d.last)
	}
	d.last.users++
	return d.last
}

func (d *Discoveries) run(ctx context.Context, a *attempt) {
	defer a.cancel()
	if a.found, a.err = d.Discover(ctx); a.err != nil {
		d.mu.Lock()
		d.drop(a)
		d.mu.Unlock()
	}
	close(a.done)
}

// await waits for the end of a discovery, and returns its error. If the last lookup that waits
// gives up, the discovery is canceled.
func (d *Discoveries) await(ctx context.Context, a *attempt) (err error) {
	select {
	case <-a.done:
		err = a.err
	default:
		err = kube.Pause(ctx, func() error {
			select {
			case <-a.done:
				return a.err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.users--; a.users == 0 && err != nil {
		a.cancel()
		d.drop(a)
	}
	return err
}

// drop lets no other lookup use the attempt. The lock must be held.
func (d *Discoveries) drop(a *attempt) {
	if d.last == a {
		d.last = nil
	}
}
