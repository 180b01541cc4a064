package peering

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/kube"
)

// MissingError says that there is no peering object where one was to be
// changed, so that no operator there has noticed anything.
type MissingError struct {
	Name   string
	Places []Place // of one namespace
}

func (e *MissingError) Error() string {
	kinds := make([]string, len(e.Places))
	for i, p := range e.Places {
		kinds[i] = p.Info.String()
	}
	return fmt.Sprintf("there is no peering object '%s' %s (%s): nobody is told of anything there; create it, or name another one with --peering",
		e.Name, e.Places[0], strings.Join(kinds, ", "))
}

// ErrNoPlaces says that the cluster has no peering resource, or that no
// namespace was given.
var ErrNoPlaces = errors.New("the cluster has no peerings, or none in these namespaces: apply peering.yaml first")

// Freeze puts a record into the peering objects of that name, so that all
// operators of a lower or the same priority pause until its lifetime ends, or
// until [Resume]. All places are tried; the error joins those of each.
func Freeze(ctx context.Context, client *kube.Client, name string, places []Place, r Record) error {
	if r.Value() == nil {
		return fmt.Errorf("freeze for %v: the lifetime must be positive", r.Lifetime)
	}
	return everywhere(ctx, client, name, places, r.Identity, r.Value())
}

// Resume takes the record of that identity away from the peering objects, also
// where there is none.
func Resume(ctx context.Context, client *kube.Client, name string, places []Place, identity string) error {
	return everywhere(ctx, client, name, places, identity, nil)
}

// everywhere writes one value to all places. In each namespace at least one
// of the resources must have the peering object.
func everywhere(ctx context.Context, client *kube.Client, name string, places []Place, identity string, value any) error {
	if len(places) == 0 {
		return ErrNoPlaces
	}
	var failed []error
	var namespaces []string
	found := map[string]bool{}
	missing := map[string][]Place{}
	for _, p := range places {
		if _, known := missing[p.Namespace]; !known {
			namespaces = append(namespaces, p.Namespace)
			missing[p.Namespace] = nil
		}
		_, err := write(ctx, client, p, name, map[string]any{"status": map[string]any{identity: value}})
		if lost := new(kube.UnknownOutcomeError); errors.As(err, &lost) && ctx.Err() == nil {
			// It is the same when it is written twice.
			_, err = write(ctx, client, p, name, map[string]any{"status": map[string]any{identity: value}})
		}
		switch {
		case err == nil:
			found[p.Namespace] = true
		case apierrors.IsNotFound(err):
			missing[p.Namespace] = append(missing[p.Namespace], p)
		default:
			found[p.Namespace] = true // or so it seems: one error is enough
			failed = append(failed, fmt.Errorf("change the peering object '%s' %s (%s): %w", name, p, p.Info, err))
		}
	}
	for _, ns := range namespaces {
		if !found[ns] {
			failed = append(failed, &MissingError{Name: name, Places: missing[ns]})
		}
	}
	return errors.Join(failed...)
}
