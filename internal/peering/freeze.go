package peering

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/kube"
)

// MissingError means that there is no peering object to change, so the operators there
// were not notified.
type MissingError struct {
	Name   string
	Places []Place // in one namespace
}

func (e *MissingError) Error() string {
	kinds := make([]string, len(e.Places))
	for i, p := range e.Places {
		kinds[i] = p.Info.String()
	}
	return fmt.Sprintf("there is no peering object '%s' %s (%s), so operators there are not notified; create it, or name another one with --peering",
		e.Name, e.Places[0], strings.Join(kinds, ", "))
}

// ErrNoPlaces is returned if the cluster has no peering resource, or if no namespace
// was given.
var ErrNoPlaces = errors.New("the cluster has no peering resources, or no namespaces are given; apply peering.yaml first")

// Freeze writes a record into the peering objects with that name. All operators with
// the same or a lower priority pause until its lifetime ends, or until [Resume]. It
// tries all places and joins their errors.
func Freeze(ctx context.Context, client *kube.Client, name string, places []Place, r Record) error {
	if r.Value() == nil {
		return fmt.Errorf("freeze for %v: the lifetime must be positive", r.Lifetime)
	}
	return everywhere(ctx, client, name, places, r.Identity, r.Value())
}

// Resume removes the record of the identity from the peering objects. It is not an
// error if there is none.
func Resume(ctx context.Context, client *kube.Client, name string, places []Place, identity string) error {
	return everywhere(ctx, client, name, places, identity, nil)
}

// everywhere writes one value to all places. In each namespace, at least one of the
// resources must have the peering object.
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
			// Writing it twice has the same effect.
			_, err = write(ctx, client, p, name, map[string]any{"status": map[string]any{identity: value}})
		}
		switch {
		case err == nil:
			found[p.Namespace] = true
		case apierrors.IsNotFound(err):
			missing[p.Namespace] = append(missing[p.Namespace], p)
		default:
			found[p.Namespace] = true // assume so: one error per namespace is enough
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
