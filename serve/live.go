package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/childwatch"
	requests "gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	bodies "gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// Every client that may create objects of the kind of a child can make them children of an
// object. So their size is limited.
const (
	// maxLive limits the JSON of the live children that one call gets.
	maxLive = 8 << 20
	// freeLive is the size up to which a call waits for no memory.
	freeLive = 24 << 10
	// firstLive is the least memory that a call with larger children gets.
	firstLive = 1 << 20
	// liveCopies is the number of copies of the JSON of a child: the input has another one.
	liveCopies = 2
	// liveOverhead is the memory of a child besides its JSON.
	liveOverhead = 256
)

// errNeedsMemory ends a list whose children need memory that the call must wait for.
var errNeedsMemory = errors.New("the live children need more memory")

// living has the live children of an object: those with the label of the operator whose
// controlling owner, or owner in the annotation, is the object.
type living struct {
	of    *requests.Children
	owner object

	all      map[string]map[string]any // JSON, by kind and name
	size     int
	reserved int
}

// liveChildren returns the children of the object as they are in the cluster, by kind and
// name, as JSON. It reads them from the API server: the hook must not decide on stale ones.
func (c *caller) liveChildren(ctx context.Context, r *gopf.Reconciliation[object]) (map[string]map[string]any, error) {
	api, ok := r.API.(*apiclient.Client)
	of := requests.ChildrenOf(ctx)
	if !ok || of == nil {
		return nil, fmt.Errorf("list the children: the client %T cannot be used for children", r.API)
	}
	l := &living{of: of, owner: r.Object}
	list := func() error { return l.list(ctx, api, c.handler.spec.Reconcile.Owns) }
	err := within(ctx, c.set.share.lists, nil, r.Object.GetNamespace(), list)
	if errors.Is(err, errNeedsMemory) {
		// The call waits for memory here, without a slot and an open request. Later
		// reservations do not wait.
		if err = l.reserve(firstLive); err == nil {
			err = within(ctx, c.set.share.lists, nil, r.Object.GetNamespace(), list)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list the children: %w", err)
	}
	return l.all, nil
}

func (l *living) list(ctx context.Context, api *apiclient.Client, owns []string) error {
	l.all, l.size = map[string]map[string]any{}, 0
	for _, name := range owns {
		info, err := api.Resource(ctx, l.owner, &client.Options{Resource: name})
		if err != nil {
			return err
		}
		if err := l.read(ctx, api.Objects, info); err != nil {
			return err
		}
	}
	return nil
}

// read reads the children of one kind. If the owner is cluster-scoped, they may be in all
// namespaces, and each tenant can create any number of objects with the label of the operator.
// So it reads only the children that the operator declared, one after the other.
func (l *living) read(ctx context.Context, api *apiclient.Objects, info kind.Info) error {
	namespace := ""
	if info.Namespaced {
		namespace = l.owner.GetNamespace() // "" means all: the owner is cluster-scoped
	}
	if info.Namespaced && namespace == "" && l.of.Listed != nil {
		return l.readListed(ctx, api, info)
	}
	selected := kube.ListOptions{Selector: childwatch.Label + "=" + l.of.Operator}
	return api.Each(ctx, info, namespace, selected, func(body *bodies.Body) error { return l.add(info, body) })
}

// readListed reads the children of one kind that are in an inventory of the owner.
func (l *living) readListed(ctx context.Context, api *apiclient.Objects, info kind.Info) error {
	for _, k := range l.of.Listed() {
		target := kube.Target{Info: info, Namespace: k.Namespace, Name: k.Name}
		if _, err := target.Path(); err != nil || k.APIVersion != info.APIVersion() || k.Kind != info.Kind {
			continue // another kind, or a name that no object can have
		}
		body, err := api.Get(ctx, target)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = l.add(info, body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add keeps an object if it is a child.
func (l *living) add(info kind.Info, body *bodies.Body) error {
	if childwatch.OwnerOf(body, l.of.Operator) != string(l.owner.GetUID()) {
		return nil
	}
	raw := body.WithoutManagedFields().WithType(info.APIVersion(), info.Kind).Raw()
	if l.size += len(raw) + liveOverhead; l.size > maxLive {
		return fmt.Errorf("the live children of %s %s have more than %d MiB of JSON; declare fewer or smaller children, "+
			"and delete objects with the label %s=%s that the operator did not create", l.owner.GetKind(), nameOf(l.owner), maxLive>>20, childwatch.Label, l.of.Operator)
	}
	if missing := liveCopies*l.size - l.reserved; missing > 0 && l.size > freeLive {
		if l.reserved == 0 {
			return errNeedsMemory
		}
		if err := l.reserve(missing); err != nil {
			return err
		}
	}
	key := info.Kind + "." + info.APIVersion()
	if l.all[key] == nil {
		l.all[key] = map[string]any{}
	}
	id := body.Name
	if l.owner.GetNamespace() == "" && body.Namespace != "" {
		id = body.Namespace + "/" + id
	}
	l.all[key][id] = json.RawMessage(raw)
	return nil
}

func (l *living) reserve(bytes int) error {
	if l.of.Reserve != nil {
		if err := l.of.Reserve(bytes); err != nil {
			return err
		}
	}
	l.reserved += bytes
	return nil
}

// nameOf returns the namespace and the name of an object, as in messages.
func nameOf(o object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
