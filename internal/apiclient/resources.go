package apiclient

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

// UnknownError means that the cluster does not have the resource.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the cluster has no resource %s; is its CRD installed?", e.Name)
}

// AmbiguousError means that a name matches several resources.
type AmbiguousError struct {
	Name  string
	Found []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s is ambiguous, be more specific: %s", e.Name, strings.Join(e.Found, ", "))
}

// ByKind returns the resource of a kind. If it is not known, it uses discovery: its CRD may
// have just been created. The error is an [*UnknownError] if a discovery does not have it that
// began at most ten seconds ago, and after the operator last saw a change of the resources. So
// a caller that needs the kind must retry.
func (c *Objects) ByKind(ctx context.Context, gvk schema.GroupVersionKind) (kind.Info, error) {
	return (&Lookup{Objects: c, Kinds: []schema.GroupVersionKind{gvk}}).ByKind(ctx, gvk)
}

// Lookup finds the resources of several kinds with one discovery. It is not safe for
// concurrent use.
type Lookup struct {
	Objects *Objects
	Kinds   []schema.GroupVersionKind // that may be looked up

	// Since is the least start of a discovery that is enough to call a kind unknown. It is for
	// callers that conclude that an object does not exist, with the time when they learned of
	// the object. They may wait up to ten seconds for the next discovery. The zero time means
	// [Objects.ByKind].
	Since time.Time

	found *kube.Discovery // nil means that none was needed
	began time.Time       // the start of that discovery
}

// ByKind is [Objects.ByKind] for one of the kinds.
func (l *Lookup) ByKind(ctx context.Context, gvk schema.GroupVersionKind) (kind.Info, error) {
	is := func(i kind.Info) bool { return i.Group == gvk.Group && i.Version == gvk.Version && i.Kind == gvk.Kind }
	known := l.Objects.Known()
	if i := slices.IndexFunc(known, is); i >= 0 {
		return known[i], nil
	}
	for _, since := range []time.Time{{}, l.Since} { // a kind that an earlier discovery has needs no other
		if l.found == nil || l.began.Before(since) {
			if err := l.discover(ctx, since); err != nil {
				return kind.Info{}, fmt.Errorf("look for %s: %w", gvk, err)
			}
		}
		if i := slices.IndexFunc(l.found.Resources, is); i >= 0 {
			return l.found.Resources[i], nil
		}
	}
	return kind.Info{}, unknown(gvk.Kind+" of "+gvk.GroupVersion().String(), l.found.Failed[gvk.GroupVersion()])
}

// discover finds the resources of all kinds.
func (l *Lookup) discover(ctx context.Context, since time.Time) error {
	var groups []string
	for _, one := range l.Kinds {
		groups = append(groups, one.Group)
	}
	slices.Sort(groups)
	found, began, err := l.Objects.discover(ctx, since, slices.Compact(groups)...)
	if err == nil {
		l.found, l.began = &found, began
	}
	return err
}

// Select returns the resource that matches the selector. If it is not known, it uses
// discovery as [Objects.ByKind]. The error is an [*UnknownError] or an [*AmbiguousError] if there is not
// exactly one.
func (c *Objects) Select(ctx context.Context, of kind.Selector) (kind.Info, error) {
	found := of.Select(c.Known())
	if len(found) == 0 {
		var groups []string
		if g, ok := of.Group(); ok {
			groups = []string{g}
		}
		now, _, err := c.discover(ctx, time.Time{}, groups...)
		if err != nil {
			return kind.Info{}, fmt.Errorf("look for %s: %w", of, err)
		}
		if found = of.Select(now.Resources); len(found) == 0 {
			return kind.Info{}, unknown(of.String(), nil)
		}
	}
	if len(found) > 1 {
		ambiguous := &AmbiguousError{Name: of.String()}
		for _, i := range found {
			ambiguous.Found = append(ambiguous.Found, Name(i))
		}
		return kind.Info{}, ambiguous
	}
	return found[0], nil
}

// discover returns a discovery of the groups that began at the given time or later, with its
// start. An offline client finds nothing.
func (c *Objects) discover(ctx context.Context, since time.Time, groups ...string) (kube.Discovery, time.Time, error) {
	now := time.Now()
	switch {
	case c.API == nil:
		return kube.Discovery{}, now, nil
	case c.Shared != nil:
		return c.Shared.after(ctx, since)
	}
	found, err := c.API.Discover(ctx, groups...)
	return found, now, err
}

// Name returns the name of a resource as in code: "v1/pods", "apps/v1/deployments".
func Name(i kind.Info) string { return i.APIVersion() + "/" + i.Plural }

func unknown(name string, why error) error {
	if why != nil {
		return fmt.Errorf("%w (%w)", &UnknownError{name}, why)
	}
	return &UnknownError{name}
}
