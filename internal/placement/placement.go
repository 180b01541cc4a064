// Package placement decides for each kind whether the state of its objects is in the
// status or in annotations. It also moves the state of all objects from one to the other.
package placement

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	kinds "k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/schema"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
)

// Places has the decision for each kind. nil means that all kinds have the same storages.
//
// The caller must not call the methods concurrently, with one exception: Find may run at
// the same time as the methods other than Find.
type Places struct {
	state  *storage.StatusState
	keeper *schema.Keeper
	log    *slog.Logger
	told   loglimit.Once[string]

	inStatus map[kinds.GroupVersionResource]bool
	shapes   atomic.Pointer[map[kinds.GroupVersionResource]*schema.Shape] // of the statuses; nil before the first Find
}

// publishing is the time that the API server may need to publish the schema of a new
// definition. It usually takes about a second.
const publishing = 10 * time.Second

// New returns the decisions for an operator that stores its progress there. They are nil
// unless the progress is in the status.
func New(progress storage.Progress, client *kube.Client, log *slog.Logger) *Places {
	in, ok := progress.(interface {
		InStatus() bool
		State() *storage.StatusState
	})
	if !ok || !in.InStatus() {
		return nil
	}
	quiet := client.Derive(func(o *kube.Options) { o.Log, o.Backoffs = slog.New(slog.DiscardHandler), nil })
	return &Places{
		state: in.State(), log: log,
		keeper: &schema.Keeper{API: quiet, Key: in.State().Keys()[0]},
	}
}

// Find asks the API server which of the kinds keep state in the status. It waits for
// schemas that are not published yet, within limits.
func (p *Places) Find(ctx context.Context, handlers handler.Set, cluster []kind.Info) map[kinds.GroupVersionResource]bool {
	if p == nil {
		return nil
	}
	inStatus := map[kinds.GroupVersionResource]bool{}
	var problems []string
	var wanted, asked []kind.Info
	for gvr, served := range discovery.Match(handlers, cluster).Kinds {
		inStatus[gvr] = false
		if !recorded(served.Handlers) || builtIn(served.Info) {
			continue
		}
		versions := versionsOf(served.Info, cluster)
		if i := slices.IndexFunc(versions, func(v kind.Info) bool { return !v.HasStatus() }); i >= 0 {
			problems = append(problems, p.problem(served.Info, named(served.Info, versions[i])+" has no status subresource", "subresources: {status: {}}", "the version in the definition"))
			continue
		}
		wanted, asked = append(wanted, served.Info), append(asked, versions...)
	}
	keeping := p.ask(ctx, asked)
	for _, info := range wanted {
		// The version that keeps the least decides: a write in it changes the object for all.
		worst := slices.MinFunc(versionsOf(info, cluster), func(a, b kind.Info) int { return int(keeping[a.GVR()] - keeping[b.GVR()]) })
		inStatus[info.GVR()] = keeping[worst.GVR()] == schema.Kept
		yaml := p.keeper.Key + ": {type: object, x-kubernetes-preserve-unknown-fields: true}"
		switch keeping[worst.GVR()] {
		case schema.Pruned:
			problems = append(problems, p.problem(info, "the schema of "+named(info, worst)+" does not keep it", yaml, "properties.status.properties in the schema of the definition"))
		case schema.NoSchemas, schema.NotPublished:
			problems = append(problems, p.problem(info, "the API server does not show the schema of "+named(info, worst), yaml, "properties.status.properties in the schema of the definition, and let the operator read /openapi/v3"))
		}
	}
	shapes := make(map[kinds.GroupVersionResource]*schema.Shape, len(wanted))
	for _, info := range wanted {
		shapes[info.GVR()] = p.keeper.Status(info.GVR())
	}
	p.shapes.Store(&shapes)
	if ctx.Err() == nil {
		slices.Sort(problems)
		for _, line := range p.told.Update(problems) {
			p.log.Error(line)
		}
	}
	return inStatus
}

func (p *Places) problem(info kind.Info, why, yaml, where string) string {
	return fmt.Sprintf("The state of %s cannot be in status.%s, because %s; it is in annotations instead. Add to %s: %s", info, p.keeper.Key, why, where, yaml)
}

// versionsOf returns all served versions of a resource, the given one first. A client may
// write objects in any of them. The API server then drops the fields that the schema of that
// version does not have. Without a status subresource in that version, the client can write the
// status as well.
func versionsOf(info kind.Info, cluster []kind.Info) []kind.Info {
	versions := []kind.Info{info}
	for _, i := range cluster {
		if i.Group == info.Group && i.Plural == info.Plural && i.Version != info.Version {
			versions = append(versions, i)
		}
	}
	return versions
}

// OpenStatus reports whether a served version of the resource has no status subresource. Clients
// may then write the status like any other field.
func OpenStatus(info kind.Info, cluster []kind.Info) bool {
	return slices.ContainsFunc(versionsOf(info, cluster), func(v kind.Info) bool { return !v.HasStatus() })
}

// named returns the words for one version of the resource.
func named(info, version kind.Info) string {
	if version.Version == info.Version {
		return "the resource"
	}
	return "its other version " + version.Version
}

// recorded reports whether one of the handlers has state on objects: progress, or an
// inventory of children.
func recorded(handlers handler.Set) bool {
	return len(handlers.Of(handler.Changes)) > 0 || len(handlers.Of(handler.Reconciles)) > 0
}

// builtIn reports whether the kind is one of Kubernetes itself. Its schema cannot be
// changed.
func builtIn(info kind.Info) bool { return !strings.Contains(info.Group, ".") }

// ask asks until all schemas are known, or the API server has had the time to publish
// them.
func (p *Places) ask(ctx context.Context, wanted []kind.Info) map[kinds.GroupVersionResource]schema.Keeping {
	began := time.Now()
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, 2*time.Second) {
		results := p.keeper.Keeping(ctx, wanted)
		missing := slices.ContainsFunc(wanted, func(i kind.Info) bool { return results[i.GVR()] == schema.NotPublished })
		if !missing || time.Since(began) > publishing || backoff.Sleep(ctx, delay) != nil {
			return results
		}
	}
}

// Update takes over the results of Find. Kinds that are not among them stay where they
// are: a conflict may hide them for a while.
func (p *Places) Update(inStatus map[kinds.GroupVersionResource]bool) {
	if p == nil {
		return
	}
	if p.inStatus == nil {
		p.inStatus = map[kinds.GroupVersionResource]bool{}
	}
	maps.Copy(p.inStatus, inStatus)
}

// Fits reports whether the state of a kind is where it must be. inStatus reports where it
// is now.
func (p *Places) Fits(info kind.Info, inStatus bool) bool {
	return p == nil || p.inStatus[info.GVR()] == inStatus
}

// Config returns the configuration with the storages of a kind.
func (p *Places) Config(shared process.Config, info kind.Info) process.Config {
	switch {
	case p == nil:
	case builtIn(info):
		shared.Progress, shared.Base = p.state.Annotations()
	default:
		shared.Progress, shared.Base = p.state.Storages(p.inStatus[info.GVR()])
		shared.KeepsStatus = func(status map[string]any) bool { return p.shape(info).Keeps(status) }
	}
	return shared
}

// shape returns the shape of the status of a kind, as of the last Find. nil means that it
// is not known.
func (p *Places) shape(info kind.Info) *schema.Shape {
	if shapes := p.shapes.Load(); shapes != nil {
		return (*shapes)[info.GVR()]
	}
	return nil
}
