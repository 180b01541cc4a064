package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/kind"
)

// API is the part of the cluster's API that is needed.
type API interface {
	Get(context.Context, kube.Target) (*object.Body, error)
	Create(context.Context, kube.Target, []byte, ...kube.Param) (*object.Body, error)
	Patch(context.Context, kube.Target, types.PatchType, []byte, ...kube.Param) (*object.Body, error)
}

// keeper keeps one of the two configurations. All writes are made by one
// goroutine, the one of run.
type keeper struct {
	*ConfigurationsOptions
	api      API
	follow   follow
	mutating bool
	info     kind.Info
	log      *slog.Logger

	wake chan struct{} // of size 1: there is something to look at

	absent atomic.Bool // it was not there when it was read last
	plain  atomic.Bool // the API server drops match conditions

	mu      sync.Mutex
	wanted  *Plan         // nil if there is none yet
	fresh   bool          // wanted has changed since it was applied
	applied chan struct{} // closed when wanted is applied; then made anew
	broken  bool          // somebody else has changed something
}

func newKeeper(api API, follow follow, mutating bool, o *ConfigurationsOptions) *keeper {
	k := &keeper{
		ConfigurationsOptions: o, api: api, follow: follow, mutating: mutating,
		info: kind.Info{
			Group: "admissionregistration.k8s.io", Version: "v1",
			Plural: "validatingwebhookconfigurations", Kind: "ValidatingWebhookConfiguration",
		},
		wake: make(chan struct{}, 1), applied: make(chan struct{}),
	}
	if mutating {
		k.info.Plural, k.info.Kind = "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"
	}
	k.log = o.Log.With("resource", k.info.String(), "name", o.Managed)
	return k
}

const (
	restorePause    = time.Second      // before the second restoration in a row, doubled with each
	failurePause    = time.Second      // after a failure, doubled with each
	maxPause        = time.Minute      // of both
	peace           = 10 * time.Minute // without restorations: they are not in a row
	conflictsInARow = 5
)

// plan replaces what is wanted.
func (k *keeper) plan(p Plan) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wanted != nil && !k.fresh { // somebody may wait for the one before
		k.applied = make(chan struct{})
	}
	k.wanted, k.fresh = &p, true
	k.ring()
}

// ring makes the keeper look.
func (k *keeper) ring() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// settled waits until what is wanted is so.
func (k *keeper) settled(ctx context.Context) {
	k.mu.Lock()
	waiting := k.applied
	k.mu.Unlock()
	select {
	case <-waiting:
	case <-ctx.Done():
	}
}

// run applies what is wanted, again and again, until ctx is done.
func (k *keeper) run(ctx context.Context) error {
	following, stop := context.WithCancel(ctx)
	var follower sync.WaitGroup
	defer follower.Wait()
	defer stop()

	var done *Plan // the last that was applied
	pauses := pauses{jitter: k.Jitter}
	for {
		select {
		case <-k.wake:
		case <-ctx.Done():
			return k.clean(ctx, done)
		}
		plan, settle := k.due(ctx, &pauses)
		if plan == nil {
			continue
		}
		err := k.apply(ctx, *plan)
		if ctx.Err() != nil {
			done = plan // it may be there
			continue
		}
		if k.Status != nil && (err != nil || pauses.failures > 0) {
			k.Status(err)
		}
		if err != nil {
			k.log.Error("The webhook configuration cannot be written; will try again.", "error", err)
			pauses.afterFailure(ctx)
			k.ring()
			continue
		}
		pauses.failures = 0
		if done == nil && !k.idle() { // before that, there is nothing that others could change
			follower.Go(func() { k.follow(following, k.info, k.changed) })
		}
		done = plan
		settle()
	}
}

// due returns what is to be applied now, if anything, and what to call when it is.
// Restorations wait their time, unless something else comes up.
func (k *keeper) due(ctx context.Context, p *pauses) (*Plan, func()) {
	for {
		k.mu.Lock()
		plan, fresh, broken, applied := k.wanted, k.fresh, k.broken, k.applied
		if plan == nil || !fresh && !broken && p.failures == 0 {
			k.mu.Unlock()
			return nil, nil
		}
		wait := time.Duration(0)
		if !fresh && broken {
			wait = time.Until(p.nextRestoration())
		}
		if wait <= 0 {
			k.broken = false
			k.mu.Unlock()
			if broken && !fresh {
				k.log.Warn("Somebody else has changed our webhooks; they are restored.")
				p.restored()
			}
			return plan, func() { k.settle(plan, applied) }
		}
		k.mu.Unlock()
		if !sleep(ctx, wait, k.wake) {
			return nil, nil
		}
	}
}

// settle notes that the plan is applied.
func (k *keeper) settle(p *Plan, applied chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wanted == p && k.fresh {
		k.fresh = false
		close(applied)
	}
}

// idle tells that there are no handlers for this configuration. There may still be
// webhooks in it of an earlier version of the operator.
func (k *keeper) idle() bool {
	return !slices.ContainsFunc(k.Handlers.Of(registry.Reviews), func(h *registry.Handler) bool {
		return h.Admission.Mutating == k.mutating
	})
}

// changed looks at news of a configuration.
func (k *keeper) changed(b *object.Body, gone bool) {
	if b.Name != k.Managed {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wanted == nil || k.fresh {
		return // it will be looked at anyway
	}
	wanted := k.entries(*k.wanted)
	if gone && len(wanted) == 0 || !gone && asWanted(webhooks(b), wanted, k.Managed, k.mutating) {
		return
	}
	k.broken = true
	k.ring()
}

func webhooks(b *object.Body) []any {
	v, _ := b.Lookup("webhooks")
	list, _ := v.([]any)
	return list
}

// clean leaves only what is persistent, if there ever was anything, and unless other
// replicas serve it.
func (k *keeper) clean(ctx context.Context, done *Plan) error {
	if done == nil || k.Stay {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if err := k.apply(ctx, done.Persistent()); err != nil {
		return fmt.Errorf("clean up the webhook configuration: %w", err)
	}
	return nil
}

// apply makes the configuration as planned, if it is not already.
func (k *keeper) apply(ctx context.Context, p Plan) error {
	var err error
	for range conflictsInARow {
		wanted := k.entries(p)
		var present, written *object.Body
		present, err = k.read(ctx)
		if apierrors.IsForbidden(err) && k.idle() {
			return nil // what we may not see was not made by us
		}
		if err != nil {
			return err
		}
		switch {
		case present == nil && len(wanted) == 0:
			return nil
		case present == nil:
			k.log.Info("Creating the webhook configuration.", "webhooks", len(wanted))
			written, err = k.api.Create(ctx, kube.Target{Info: k.info}, k.body(wanted, nil))
		case asWanted(webhooks(present), wanted, k.Managed, k.mutating):
			return nil
		default:
			k.log.Info("Reconfiguring the webhook configuration.", "webhooks", len(wanted))
			written, err = k.api.Patch(ctx, k.target(), types.MergePatchType, k.body(wanted, present))
		}
		if err == nil {
			k.checkConditions(wanted, written)
		}
		lost, _ := errors.AsType[*kube.UnknownOutcomeError](err)
		if err == nil || lost == nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return err
		}
		// Others were faster, or it is not known what has happened: look again.
	}
	return err
}

// entries returns the webhooks that the plan wants, as far as the API server keeps
// them.
func (k *keeper) entries(p Plan) []Entry {
	if k.plain.Load() {
		p.Conditions = nil
	}
	return p.Entries(k.mutating)
}

// checkConditions notes whether the API server dropped the match conditions: servers
// of versions 1.28 and 1.29 do if the feature is switched off there. Without that,
// the keeper would take them for removed by another client, and restore them forever.
func (k *keeper) checkConditions(wanted []Entry, written *object.Body) {
	i := slices.IndexFunc(wanted, func(e Entry) bool { return e["matchConditions"] != nil })
	if i < 0 || written == nil {
		return
	}
	kept := slices.ContainsFunc(webhooks(written), func(w any) bool {
		hook, _ := w.(map[string]any)
		return hook["name"] == wanted[i]["name"] && hook["matchConditions"] != nil
	})
	if !kept && !k.plain.Swap(true) {
		k.log.Warn("The API server drops match conditions of webhooks; it asks the operator about its own writes, too.")
	}
}

// read returns the configuration as it is now; nil if there is none. Those who may
// only patch it, as Kopf's operators, read it by a patch of nothing.
func (k *keeper) read(ctx context.Context) (*object.Body, error) {
	b, err := k.api.Get(ctx, k.target())
	if apierrors.IsForbidden(err) {
		b, err = k.api.Patch(ctx, k.target(), types.MergePatchType, []byte("{}"))
	}
	k.absent.Store(apierrors.IsNotFound(err))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return b, err
}

func (k *keeper) target() kube.Target { return kube.Target{Info: k.info, Name: k.Managed} }

// body is what is sent. A patch is bound to the version that it was made for.
func (k *keeper) body(wanted []Entry, present *object.Body) []byte {
	var metadata map[string]any
	var others []any
	if present == nil {
		metadata = map[string]any{"name": k.Managed}
	} else {
		metadata = map[string]any{"resourceVersion": present.ResourceVersion}
		others = webhooks(present)
	}
	raw, err := json.Marshal(map[string]any{"metadata": metadata, "webhooks": merged(others, wanted, k.Managed)})
	if err != nil {
		panic(err) // there is nothing in it that JSON cannot hold
	}
	return raw
}
