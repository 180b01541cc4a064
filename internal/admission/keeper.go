package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// API is the part of the Kubernetes API that this package needs.
type API interface {
	Get(context.Context, kube.Target) (*object.Body, error)
	Create(context.Context, kube.Target, []byte, ...kube.Param) (*object.Body, error)
	Patch(context.Context, kube.Target, types.PatchType, []byte, ...kube.Param) (*object.Body, error)
}

// keeper manages one of the two configurations. Only the goroutine of run writes.
type keeper struct {
	*ConfigurationsOptions
	api      API
	follow   follow
	mutating bool
	info     kind.Info
	log      *slog.Logger

	wake chan struct{} // wakes run; its capacity is 1

	absent atomic.Bool // the configuration did not exist when it was last read
	plain  atomic.Bool // the API server drops match conditions

	mu      sync.Mutex
	wanted  *Plan         // nil means that there is none yet
	fresh   bool          // wanted has changed since it was applied
	applied chan struct{} // closed when wanted is applied; a new plan gets a new channel
	broken  bool          // another client has changed our webhooks
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
	restorePause    = time.Second      // backoff before the second consecutive restoration, doubled each time
	failurePause    = time.Second      // backoff after a failure, doubled each time
	maxPause        = time.Minute      // limits both
	peace           = 10 * time.Minute // the time without restorations after which they are no longer consecutive
	conflictsInARow = 5
)

// plan sets the wanted plan.
func (k *keeper) plan(p Plan) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wanted != nil && !k.fresh { // the current channel is closed
		k.applied = make(chan struct{})
	}
	k.wanted, k.fresh = &p, true
	k.ring()
}

// ring wakes run.
func (k *keeper) ring() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// waitApplied waits until the wanted plan is applied, or until ctx is done.
func (k *keeper) waitApplied(ctx context.Context) {
	k.mu.Lock()
	waiting := k.applied
	k.mu.Unlock()
	select {
	case <-waiting:
	case <-ctx.Done():
	}
}

// run applies the wanted plan, again and again, until ctx is done. It then cleans up.
func (k *keeper) run(ctx context.Context) error {
	following, stop := context.WithCancel(ctx)
	var follower sync.WaitGroup
	defer follower.Wait()
	defer stop()

	var done *Plan // the last applied plan
	pauses := pauses{jitter: k.Jitter}
	for {
		select {
		case <-k.wake:
		case <-ctx.Done():
			return k.clean(ctx, done)
		}
		plan, noteApplied := k.due(ctx, &pauses)
		if plan == nil {
			continue
		}
		err := k.apply(ctx, *plan)
		if ctx.Err() != nil {
			done = plan // it may have been applied
			continue
		}
		if k.Status != nil && (err != nil || pauses.failures > 0) {
			k.Status(err)
		}
		if err != nil {
			k.log.Error("The webhook configuration cannot be written; retrying.", "error", err)
			pauses.afterFailure(ctx)
			k.ring()
			continue
		}
		pauses.failures = 0
		if done == nil && !k.idle() { // before the first write, there is nothing to protect
			follower.Go(func() { k.follow(following, k.info, k.changed) })
		}
		done = plan
		noteApplied()
	}
}

// due returns the plan to apply now, and a function to call when it is applied. A nil
// plan means that nothing is due. Restorations wait for their backoff, unless a new plan
// arrives.
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
				k.log.Warn("Another client has changed the operator's webhooks; restoring them.")
				p.restored()
			}
			return plan, func() { k.noteApplied(plan, applied) }
		}
		k.mu.Unlock()
		if backoff.SleepOrWake(ctx, wait, k.wake) != nil {
			return nil, nil
		}
	}
}

// noteApplied notes that the plan is applied.
func (k *keeper) noteApplied(p *Plan, applied chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wanted == p && k.fresh {
		k.fresh = false
		close(applied)
	}
}

// idle reports whether there are no handlers for this configuration. It may still have
// webhooks of an earlier version of the operator.
func (k *keeper) idle() bool {
	return !slices.ContainsFunc(k.Handlers.Of(handler.Reviews), func(h *handler.Handler) bool {
		return h.Admission.Mutating == k.mutating
	})
}

// changed handles a watch event. It wakes run if our webhooks are not as wanted.
func (k *keeper) changed(b *object.Body, gone bool) {
	if b.Name != k.Managed {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wanted == nil || k.fresh {
		return // run will read the configuration anyway
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

// clean removes all webhooks that are not persistent. It does nothing if none was
// written, or if other replicas serve the webhooks.
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

// apply writes the planned webhooks, unless they are there already.
func (k *keeper) apply(ctx context.Context, p Plan) error {
	var err error
	for range conflictsInARow {
		wanted := k.entries(p)
		var present, written *object.Body
		present, err = k.read(ctx)
		if apierrors.IsForbidden(err) && k.idle() {
			return nil // without the permission to read, we cannot have written it
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
		if err == nil || !kube.Lost(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return err
		}
		// Another client was faster, or the response was lost: read it again.
	}
	return err
}

// entries returns the webhooks of the plan, without fields that the API server drops.
func (k *keeper) entries(p Plan) []Entry {
	if k.plain.Load() {
		p.Conditions = nil
	}
	return p.Entries(k.mutating)
}

// checkConditions notes whether the API server dropped the match conditions. Versions
// 1.28 and 1.29 do so if the feature is disabled. Without this check, the keeper would
// conclude that another client removed them, and restore them forever.
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
		k.log.Warn("The API server drops match conditions of webhooks; it also sends the operator's own writes for review.")
	}
}

// read returns the current configuration. nil means that there is none. An operator that
// has only the permission to patch, as with Kopf, reads it with an empty patch.
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

// body returns the body of the request. A patch is bound to the version of present.
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
		panic(err) // cannot happen: all values are JSON
	}
	return raw
}
