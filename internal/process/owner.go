package process

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/reconcile"
)

// owner is the part of [Memory] for reconcile handlers.
type owner struct {
	body     *object.Packed // the newest known state after the last turn; see [owner.pack]
	hollow   bool           // body has no content
	newest   *object.Body   // the newest known state during a turn
	calls    []*reconciled  // of the handlers so far; there are few, and a map takes much memory
	fights   reconcile.Fights
	teardown *teardown // nil before the deletion of the children
	gone     bool      // the object is being deleted, and its children are gone, or are kept
	judged   bool      // the condition Paused was compared with the pause since the process started
	paused   bool      // the object has the condition Paused, or may have it
}

// teardown is the state of the deletion of all children of one object.
type teardown struct {
	blocking string       // the child that the deletion waits for
	failures int          // in a row
	failed   children.Key // the child at which the deletion failed last, if it is known
}

// call returns the state of a handler. nil means that it has none yet.
func (o *owner) call(id string) *reconciled {
	if i := slices.IndexFunc(o.calls, func(c *reconciled) bool { return c.id == id }); i >= 0 {
		return o.calls[i]
	}
	return nil
}

// reconciled is the state of one reconcile handler of one object.
type reconciled struct {
	id      string    // of the handler
	essence string    // identifies the essence of the last call; "" means that it is the one of owner.body
	due     time.Time // the time of the next call; zero means none
	retries int
	started time.Time // of the first attempt
	verdict verdict
	saved   fingerprint // of the inventory as it was saved last
	checked string      // the version of the object that was compared with it
	far     *farCalls   // nil means that there were none
	called  bool        // by this process
	dirty   bool        // a child has changed since the last call
	early   bool        // due was made earlier, because of a child
	held    bool        // it cannot be called now; an event starts another turn when it can
}

// farCalls limits the calls for children in other namespaces.
type farCalls struct {
	used time.Duration // the time that the calls use up
	at   time.Time     // when used was computed
}

// fingerprint identifies a text that is compared, but not needed.
type fingerprint [16]byte

func fingerprintOf(text string) fingerprint {
	sum := sha256.Sum256([]byte(text))
	return fingerprint(sum[:16])
}

const (
	// largestOwner is the size of the largest compressed state that is kept between two turns,
	// in bytes. Larger ones are read again. Otherwise a few hundred objects would fill the
	// memory.
	largestOwner = 64 << 10
	// hugeOwner is the size of the JSON from which on compressing is not tried.
	hugeOwner = 512 << 10
	// ownerPause is the delay after a state could not be read.
	ownerPause = 5 * time.Second
)

// pack compresses the newest state for the time until the next turn. fix is called before a
// state that is not kept is dropped.
func (o *owner) pack(packer *object.Packer, fix func(*owner)) {
	if o.body == nil || !o.body.Is(o.newest.Identity) || o.body.Stale() != o.newest.Stale() {
		if o.hollow = o.newest.Size() >= hugeOwner; o.hollow {
			o.body = packer.Identify(o.newest)
		} else if o.body = packer.PackQuickly(o.newest); o.body.Size() > largestOwner {
			o.body, o.hollow = o.body.Hollow(), true
		}
	}
	if o.hollow {
		fix(o)
	}
	o.newest = nil
}

// fixEssence computes the essence of the last calls: the state that has it is not kept.
func (p *Processor) fixEssence(o *owner) {
	id := ""
	for _, c := range o.calls {
		if !c.called || c.essence != "" {
			continue
		}
		if id == "" {
			id = progress.BaseID(p.essence(o.newest))
		}
		c.essence = id
	}
}

// readOwner reads the state of an object that was not kept. nil means that the object is gone,
// or that another turn will try again.
func (p *Processor) readOwner(ctx context.Context, o *owner) *object.Body {
	namespace, name := o.body.Names()
	body, err := p.API.Get(ctx, kube.Target{Info: p.Resource, Namespace: namespace, Name: name})
	switch {
	case err == nil && o.body.HasUID(body.UID):
		return body
	case err == nil || apierrors.IsNotFound(err):
		return nil // its deletion event follows
	}
	for _, c := range o.calls {
		c.dirty = true // the reason of this turn is lost
	}
	if ok, suppressed := p.limiter.Allow("owner"); ok {
		p.Logger(object.Identity{Kind: p.Resource.Kind, Namespace: namespace, Name: name}.Bare()).Warn("The object could not be read, so its reconcile handlers wait; trying again in 5 seconds.", "error", err, "suppressed", suppressed)
	}
	p.Alarm(o.body.Key(), time.Now().Add(ownerPause))
	return nil
}
