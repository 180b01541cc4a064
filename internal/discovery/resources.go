package discovery

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// Resources tracks the resources of the cluster.
type Resources struct {
	Client *kube.Client
	Stream stream.Config // how to watch; the resource is set here
	Log    *slog.Logger

	// Disabled keeps the resources that are known at the start. CRDs are not watched,
	// and discovery is repeated only while it fails for some groups.
	Disabled bool

	told    loglimit.Once[schema.GroupVersion]        // groups whose failure was logged
	missing map[schema.GroupVersionResource]time.Time // since when a known resource is not in discovery
}

// settling are the delays of discovery after a change of a CRD: the API server serves
// it some time after it is stored.
var settling = []time.Duration{0, 300 * time.Millisecond, time.Second, 5 * time.Second}

// vanishing is the time that a resource must be missing in discovery before it counts
// as removed. A server that has just started does not list custom resources at once.
const vanishing = 5 * time.Second

// blind is the interval of discovery if CRDs cannot be watched.
const blind = time.Minute

// Run calls found with all resources of the cluster whenever they may have changed,
// until ctx is done. known are the resources at the start.
func (r *Resources) Run(ctx context.Context, known []kind.Info, found func([]kind.Info)) {
	if r.Disabled {
		r.repair(ctx, known, found)
		return
	}
	changed := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.follow(ctx, known, changed)
	}()
	defer func() { <-done }()

	stage, failures := len(settling), 0
	timer := time.NewTimer(blind)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			stage = 0
		case <-timer.C:
			now, ok := r.ask(ctx, known)
			if ok {
				known = now
				found(known)
			}
			if !ok || len(r.missing) > 0 {
				stage = min(stage, len(settling)-2) // retry soon
			}
			stage++
			if failures++; r.told.Len() == 0 {
				failures = 0
			}
		}
		timer.Reset(r.jittered(pause(stage, failures)))
	}
}

// repair repeats discovery until it succeeds for all groups.
func (r *Resources) repair(ctx context.Context, known []kind.Info, found func([]kind.Info)) {
	for r.told.Len() > 0 {
		if backoff.Sleep(ctx, r.jittered(blind)) != nil {
			return
		}
		if now, ok := r.ask(ctx, known); ok {
			known = now
			found(known)
		}
	}
	<-ctx.Done()
}

// jittered returns the delay of a discovery with jitter. A changed CRD makes all
// operators of a cluster run discovery at the same time.
func (r *Resources) jittered(d time.Duration) time.Duration {
	return r.Client.Jitter().Shorten(d, jitter.Slight)
}

// ask runs discovery.
func (r *Resources) ask(ctx context.Context, known []kind.Info) (now []kind.Info, ok bool) {
	discovered, err := r.Client.Discover(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, false
	case err != nil:
		r.Log.Warn("Discovery failed; retrying.", "error", err)
		return nil, false
	}
	r.Tell(discovered)
	return r.keepMissing(known, Merge(known, discovered)), true
}

// Tell logs groups whose discovery failed, each once until it succeeds again.
func (r *Resources) Tell(d kube.Discovery) {
	for _, gv := range r.told.Update(slices.Collect(maps.Keys(d.Failed))) {
		r.Log.Warn("Discovery of an API group failed; retrying.", "group", gv.String(), "error", d.Failed[gv])
	}
}

// Merge returns the discovered resources, plus the known resources of groups whose
// discovery failed: they may still exist.
func Merge(known []kind.Info, now kube.Discovery) []kind.Info {
	merged := slices.Clone(now.Resources)
	for _, i := range known {
		_, failed := now.Failed[schema.GroupVersion{Group: i.Group, Version: i.Version}]
		_, whole := now.Failed[schema.GroupVersion{Group: i.Group}]
		there := slices.ContainsFunc(merged, func(other kind.Info) bool { return other.GVR() == i.GVR() })
		if (failed || whole) && !there {
			merged = append(merged, i)
		}
	}
	return merged
}

// keepMissing adds known resources that have been missing only for a short time. If
// another version of the same resource is served, it has replaced the missing one:
// keeping both would make selectors ambiguous.
func (r *Resources) keepMissing(known, now []kind.Info) []kind.Info {
	missing := map[schema.GroupVersionResource]time.Time{}
	for _, i := range known {
		if slices.ContainsFunc(now, func(other kind.Info) bool { return other.GVR().GroupResource() == i.GVR().GroupResource() }) {
			continue
		}
		since, before := r.missing[i.GVR()]
		if !before {
			since = time.Now()
		}
		if time.Since(since) < vanishing {
			missing[i.GVR()] = since
			now = append(now, i)
		}
	}
	r.missing = missing
	return now
}

// pause returns the time until the next discovery. While groups fail, it starts with
// seconds and grows.
func pause(stage, failures int) time.Duration {
	switch {
	case stage < len(settling):
		return settling[stage]
	case failures > 0:
		return backoff.Backoff{First: settling[len(settling)-1], Most: blind}.After(failures)
	}
	return blind
}

// follow signals changes of custom resource definitions.
func (r *Resources) follow(ctx context.Context, known []kind.Info, changed chan<- struct{}) {
	definitions := kind.Plural("customresourcedefinitions").InGroup("apiextensions.k8s.io").Select(known)
	if len(definitions) == 0 {
		return
	}
	config := r.Stream
	config.Info, config.Namespace, config.Log = definitions[0], "", r.Log
	synced := false
	_ = stream.New(r.Client, config).Run(ctx, func(e stream.Event) {
		// The first list contains only known definitions. A change between discovery
		// and the list would be missed, so Synced signals as well.
		if e.Type == kube.Listed && !synced {
			return
		}
		synced = synced || e.Type == stream.Synced
		select {
		case changed <- struct{}{}:
		default:
		}
	})
}
