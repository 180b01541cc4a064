package engine

import (
	"context"
	"fmt"
	"slices"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/observe"
	"gopf.dev/gopf/internal/peering"
	"gopf.dev/gopf/kind"
)

// Freeze puts a record into the peerings of what the operator would serve, so
// that operators of lower or the same priority pause. An identity that is empty
// is that of whoever is at the keyboard.
func Freeze(ctx context.Context, c Config, r peering.Record) error {
	if r.Identity == "" {
		r.Identity = peering.ThisSystem().Person(ctx)
	}
	return atPeerings(ctx, c, func(client *kube.Client, places []peering.Place) error {
		return peering.Freeze(ctx, client, c.Peering.Name, places, r)
	})
}

// Unfreeze takes a record away that [Freeze] has put there.
func Unfreeze(ctx context.Context, c Config, identity string) error {
	if identity == "" {
		identity = peering.ThisSystem().Person(ctx)
	}
	return atPeerings(ctx, c, func(client *kube.Client, places []peering.Place) error {
		return peering.Resume(ctx, client, c.Peering.Name, places, identity)
	})
}

// atPeerings does something at all places where the operator would meet others.
func atPeerings(ctx context.Context, c Config, do func(*kube.Client, []peering.Place) error) error {
	client, _, err := connect(ctx, &c, newVitals(c, nil))
	if err != nil {
		return err
	}
	defer client.Close()
	found, err := discover(ctx, client, &observe.Resources{Client: client, Stream: c.Stream, Log: c.Log})
	if err != nil {
		return err
	}
	resources := peering.Resources(found, c.Peering.Clusterwide)
	var namespaces []string
	if !c.Peering.Clusterwide {
		if namespaces, err = matching(ctx, client, c.Namespaces); err != nil {
			return err
		}
		if len(namespaces) == 0 && len(resources) > 0 {
			return fmt.Errorf("no namespace of the cluster matches %s", c.Namespaces)
		}
	}
	return do(client, peering.Places(resources, namespaces))
}

// matching are the namespaces that the patterns stand for.
func matching(ctx context.Context, client *kube.Client, patterns observe.Namespaces) (names []string, err error) {
	if names, fixed := patterns.Fixed(); fixed {
		return names, nil
	}
	info := kind.Info{Version: "v1", Plural: "namespaces", Kind: "Namespace"}
	_, err = client.List(ctx, info, "", kube.ListOptions{}, func(b *object.Body) error {
		if patterns.Match(b.Name) {
			names = append(names, b.Name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the namespaces that match: %w", err)
	}
	slices.Sort(names)
	return names, nil
}
