package connect

import (
	"context"
	"fmt"
	"slices"

	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/peering"
	"gopf.dev/gopf/internal/vitals"
	"gopf.dev/gopf/kind"
)

// RefusedError reports that the API server rejected the credentials of a command.
// Commands fail with it at once; operators wait for new credentials instead.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the API server rejects the credentials: %v", e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// Scope selects peering objects.
type Scope struct {
	Name        string               // of the objects
	Clusterwide bool                 // one cluster-scoped object instead of one in each namespace
	Namespaces  discovery.Namespaces // empty means the whole cluster
}

// Freeze adds a record to all peerings of the scope. It pauses operators of
// the same or a lower priority. An empty identity means that of the current user.
func Freeze(ctx context.Context, c Config, scope Scope, r peering.Record) error {
	if r.Identity == "" {
		r.Identity = peering.ThisSystem().Person(ctx)
	}
	return atPeerings(ctx, c, scope, func(ctx context.Context, client *kube.Client, places []peering.Place) error {
		return peering.Freeze(ctx, client, scope.Name, places, r)
	})
}

// Unfreeze removes the record of [Freeze]. An empty identity means that of the current
// user.
func Unfreeze(ctx context.Context, c Config, scope Scope, identity string) error {
	if identity == "" {
		identity = peering.ThisSystem().Person(ctx)
	}
	return atPeerings(ctx, c, scope, func(ctx context.Context, client *kube.Client, places []peering.Place) error {
		return peering.Resume(ctx, client, scope.Name, places, identity)
	})
}

// atPeerings calls do with all peerings of the scope. It fails if no
// namespace matches.
func atPeerings(ctx context.Context, c Config, scope Scope, do func(context.Context, *kube.Client, []peering.Place) error) error {
	return Command(ctx, c, func(ctx context.Context, client *kube.Client, found []kind.Info) error {
		resources := peering.Resources(found, scope.Clusterwide)
		var namespaces []string
		if !scope.Clusterwide {
			var err error
			if namespaces, err = Matching(ctx, client, scope.Namespaces); err != nil {
				return err
			}
			if len(namespaces) == 0 && len(resources) > 0 {
				return fmt.Errorf("no namespace of the cluster matches %s", scope.Namespaces)
			}
		}
		return do(ctx, client, peering.Places(resources, namespaces))
	})
}

// Command connects to the cluster, and calls do with the resources of the cluster. It
// fails at once if the API server rejects the credentials.
func Command(ctx context.Context, c Config, do func(context.Context, *kube.Client, []kind.Info) error) error {
	return CommandIn(ctx, c, func(ctx context.Context, connection Connection, found []kind.Info) error {
		return do(ctx, connection.Client, found)
	})
}

// CommandIn is [Command] for commands that need more of the connection. It closes the
// connection.
func CommandIn(ctx context.Context, c Config, do func(context.Context, Connection, []kind.Info) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v, err := vitals.New(vitals.Config{})
	if err != nil {
		return err
	}
	v.Refusal = func(err error) { cancel(&RefusedError{err}) }
	connection, err := Open(ctx, c, v)
	if err != nil {
		return err
	}
	client := connection.Client
	defer client.Close()
	found, err := Discover(ctx, c, client, &discovery.Resources{Client: client, Stream: c.Stream, Log: c.Log})
	if err != nil {
		return err
	}
	return do(ctx, connection, found)
}

// Matching returns the sorted names of the namespaces that match the patterns. Plain
// names are returned without a request.
func Matching(ctx context.Context, client *kube.Client, patterns discovery.Namespaces) (names []string, err error) {
	if names, fixed := patterns.Fixed(); fixed {
		return names, nil
	}
	info := discovery.NamespaceInfo()
	_, err = client.List(ctx, info, "", kube.ListOptions{}, func(b *object.Body) error {
		if patterns.Match(b.Name) {
			names = append(names, b.Name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	slices.Sort(names)
	return names, nil
}
