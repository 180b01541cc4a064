package observe

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// Resources follows which resources the cluster has.
type Resources struct {
	Client *kube.Client
	Stream stream.Config // how to follow; what is filled in here
	Log    *slog.Logger

	// Disabled makes what is known at the start stay: nothing is followed, and
	// the cluster is asked again only while groups are out of order.
	Disabled bool

	told    map[schema.GroupVersion]bool              // groups that were reported as out of order
	missing map[schema.GroupVersionResource]time.Time // since when what was known is not listed
}

// settling are the moments after a change of a definition at which the cluster
// is asked again: the API serves it some time after it is stored.
var settling = []time.Duration{0, 300 * time.Millisecond, time.Second, 5 * time.Second}

// vanishing is how long a resource must be missing to be gone: a server that has
// just started does not list custom resources at once.
const vanishing = 5 * time.Second

// blind is how often the cluster is asked when definitions cannot be followed.
const blind = time.Minute

// Run calls found with all resources of the cluster whenever some may have
// come or gone, until the context is done. It takes those known at the start.
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
				stage = min(stage, len(settling)-2) // to be asked again soon
			}
			stage++
			if failures++; len(r.told) == 0 {
				failures = 0
			}
		}
		timer.Reset(r.jittered(pause(stage, failures)))
	}
}

// repair asks again until no group is out of order.
func (r *Resources) repair(ctx context.Context, known []kind.Info, found func([]kind.Info)) {
	for len(r.told) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.jittered(blind)):
		}
		if now, ok := r.ask(ctx, known); ok {
			known = now
			found(known)
		}
	}
	<-ctx.Done()
}

// jittered returns the delay of a discovery with jitter: a changed definition makes
// all operators of a cluster ask.
func (r *Resources) jittered(d time.Duration) time.Duration {
	return r.Client.Jitter().Shorten(d, jitter.Slight)
}

// ask finds out what the cluster has now.
func (r *Resources) ask(ctx context.Context, known []kind.Info) (now []kind.Info, ok bool) {
	discovered, err := r.Client.Discover(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, false
	case err != nil:
		r.Log.Warn("The resources of the cluster cannot be found out; trying again.", "error", err)
		return nil, false
	}
	r.Tell(discovered)
	return r.keepMissing(known, Merge(known, discovered)), true
}

// Tell reports groups that are out of order: each once until it is in order
// again.
func (r *Resources) Tell(d kube.Discovery) {
	told := map[schema.GroupVersion]bool{}
	for gv, err := range d.Failed {
		if !r.told[gv] {
			r.Log.Warn("A group of the API is out of order: what it has cannot be found out now; trying again.", "group", gv.String(), "error", err)
		}
		told[gv] = true
	}
	r.told = told
}

// Merge is what the cluster has by what was known before and what is found now:
// what belongs to groups that are out of order may still be there.
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

// keepMissing adds what was known and is missing, but not for long enough. If
// another version of the same resource is there, the missing one was replaced by it:
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

// pause is the time until the cluster is asked again. While groups are out of order,
// it begins with seconds, and grows.
func pause(stage, failures int) time.Duration {
	switch {
	case stage < len(settling):
		return settling[stage]
	case failures > 0:
		return min(settling[len(settling)-1]<<min(failures-1, 10), blind)
	}
	return blind
}

// follow reports changes of custom resource definitions.
func (r *Resources) follow(ctx context.Context, known []kind.Info, changed chan<- struct{}) {
	definitions := kind.Plural("customresourcedefinitions").InGroup("apiextensions.k8s.io").Select(known)
	if len(definitions) == 0 {
		return
	}
	config := r.Stream
	config.Info, config.Namespace, config.Log = definitions[0], "", r.Log
	synced := false
	_ = stream.New(r.Client, config).Run(ctx, func(e stream.Event) {
		// The first listing is of what is known; but whatever was changed between
		// asking and listing is told by nobody else.
		if e.Type == stream.Listed && !synced {
			return
		}
		synced = synced || e.Type == stream.Synced
		select {
		case changed <- struct{}{}:
		default:
		}
	})
}
