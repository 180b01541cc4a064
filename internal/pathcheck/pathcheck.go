// Package pathcheck finds the paths of fields that handlers use, and has them checked
// against the schemas of the cluster.
package pathcheck

import (
	"cmp"
	"log/slog"
	"slices"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/schema"
	"gopf.dev/gopf/kind"
)

// Checks compares the paths of handlers with the schemas of the cluster.
type Checks struct{ *schema.Checker }

// New returns the checks of an operator. Their failed requests cause no errors in the
// log, because nothing depends on them.
func New(client *kube.Client, log *slog.Logger) Checks {
	quiet := client.Derive(func(o *kube.Options) { o.Log, o.Backoffs = slog.New(slog.DiscardHandler), nil })
	return Checks{schema.NewChecker(quiet, log)}
}

// Request requests a check of the paths of all handlers whose resource the cluster has.
// It does not block.
func (c Checks) Request(handlers handler.Set, cluster []kind.Info) {
	for _, used := range usedPaths(handlers, cluster) {
		c.Check(used.info, used.paths)
	}
}

// usage has the paths that the handlers of a resource use.
type usage struct {
	info  kind.Info
	paths []schema.Path
}

// usedPaths returns the paths of the handlers, by resource. Handlers that select their
// resources by a pattern are omitted, because some of these may lack the path.
// So are reviews of subresources, which may be of another kind.
func usedPaths(handlers handler.Set, cluster []kind.Info) (all []usage) {
	for _, h := range handlers {
		if h.Change == nil && len(h.Criteria.Fields) == 0 || !h.Of.Specific() || h.Admission != nil && h.Admission.Subresource != "" {
			continue
		}
		found := h.Of.Select(cluster)
		if len(found) != 1 {
			continue // the resource does not exist, or the name is ambiguous
		}
		i := slices.IndexFunc(all, func(u usage) bool { return u.info.GVR() == found[0].GVR() })
		if i < 0 {
			i, all = len(all), append(all, usage{info: found[0]})
		}
		for _, f := range h.Criteria.Fields {
			all[i].add(f.Path, f.Doubt, h.ID)
		}
		if h.Change != nil {
			all[i].add(h.Change.Path, h.Change.Doubt, h.ID)
		}
	}
	return all
}

func (u *usage) add(keys []string, doubt, id string) {
	i := slices.IndexFunc(u.paths, func(p schema.Path) bool { return slices.Equal(p.Keys, keys) })
	if i < 0 {
		i, u.paths = len(u.paths), append(u.paths, schema.Path{Keys: keys, Doubt: doubt})
	}
	u.paths[i].Doubt = cmp.Or(u.paths[i].Doubt, doubt)
	if !slices.Contains(u.paths[i].Handlers, id) {
		u.paths[i].Handlers = append(u.paths[i].Handlers, id)
	}
}
