package manifests

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/backoff"
)

// fieldManager is the field manager of the applied fields.
const fieldManager = "gopf"

// How long a new kind may take to be served, and how often this is checked.
const (
	servedLimit = 30 * time.Second
	servedPause = 50 * time.Millisecond
)

var (
	crdKind       = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
)

// Apply applies the objects to the cluster by server-side apply, as field manager "gopf"
// and with force: the manifests win conflicts. Custom resource definitions go first, and
// Apply waits until they are served. Then come namespaces, then the rest in the given
// order. Namespaced objects without a namespace go to "default". Objects with only a
// generateName are created. Apply calls applied, which may be nil, after each object.
// Errors name the object and its source.
func Apply(ctx context.Context, config *rest.Config, objects []Object, applied func(Object)) error {
	a, err := newApplier(config)
	if err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	for _, stage := range stages(objects) {
		for _, o := range stage {
			if err := a.apply(ctx, o); err != nil {
				return fmt.Errorf("apply %v from %s: %w", o, o.Source, err)
			}
			if applied != nil {
				applied(o)
			}
		}
		for _, o := range stage {
			if o.GroupVersionKind().GroupKind() != crdKind {
				continue
			}
			if err := a.awaitServed(ctx, o); err != nil {
				return fmt.Errorf("wait until %v from %s is served: %w", o, o.Source, err)
			}
		}
	}
	return nil
}

// stages groups the objects by the order in which they must be applied.
func stages(objects []Object) [3][]Object {
	var stages [3][]Object
	for _, o := range objects {
		stage := 2
		switch o.GroupVersionKind().GroupKind() {
		case crdKind:
			stage = 0
		case namespaceKind:
			stage = 1
		}
		stages[stage] = append(stages[stage], o)
	}
	return stages
}

// applier applies objects to one cluster.
type applier struct {
	client dynamic.Interface
	kinds  *kinds
}

func newApplier(config *rest.Config) (*applier, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // no client-side rate limit: there are few objects, and the user is waiting
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, err
	}
	kinds, err := newKinds(config, http)
	if err != nil {
		return nil, err
	}
	return &applier{client: client, kinds: kinds}, nil
}

func (a *applier) apply(ctx context.Context, o Object) error {
	resource, err := a.kinds.find(ctx, o.GroupVersionKind())
	if err != nil {
		return err
	}
	var into dynamic.ResourceInterface = a.client.Resource(resource.GroupVersionResource)
	switch {
	case resource.namespaced && o.GetNamespace() == "":
		into = a.client.Resource(resource.GroupVersionResource).Namespace(metav1.NamespaceDefault)
	case resource.namespaced:
		into = a.client.Resource(resource.GroupVersionResource).Namespace(o.GetNamespace())
	case o.GetNamespace() != "":
		return fmt.Errorf("metadata.namespace is %q, but the kind %s is cluster-scoped; remove the namespace", o.GetNamespace(), o.GetKind())
	}
	if o.GetName() == "" {
		_, err = into.Create(ctx, o.Unstructured, metav1.CreateOptions{FieldManager: fieldManager})
		return err
	}
	_, err = into.Apply(ctx, o.GetName(), o.Unstructured, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}

// awaitServed waits until a custom resource definition is established, discovery
// has its kind in all served versions, and objects of it can be listed.
func (a *applier) awaitServed(ctx context.Context, crd Object) error {
	resource, err := a.kinds.find(ctx, crd.GroupVersionKind())
	if err != nil {
		return err
	}
	definitions := a.client.Resource(resource.GroupVersionResource)
	ctx, cancel := context.WithTimeoutCause(ctx, servedLimit, fmt.Errorf("timed out after %v", servedLimit))
	defer cancel()
	for {
		current, err := definitions.Get(ctx, crd.GetName(), metav1.GetOptions{})
		if err == nil {
			err = a.served(ctx, current)
		}
		if err == nil {
			return nil
		}
		if over := backoff.Sleep(ctx, servedPause); over != nil {
			return fmt.Errorf("%w: %w", over, err)
		}
	}
}

// served returns an error if the kind of the definition cannot be used yet.
func (a *applier) served(ctx context.Context, crd *unstructured.Unstructured) error {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, kind := range []string{"NamesAccepted", "Established"} {
		i := slices.IndexFunc(conditions, func(c any) bool {
			condition, _ := c.(map[string]any)
			return condition["type"] == kind
		})
		if i < 0 {
			return fmt.Errorf("condition %s is missing", kind)
		}
		condition, _ := conditions[i].(map[string]any)
		if condition["status"] != "True" {
			return fmt.Errorf("condition %s: %v", kind, condition["message"])
		}
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if version["served"] != true {
			continue
		}
		name, _ := version["name"].(string)
		found, err := a.kinds.find(ctx, schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
		if err != nil {
			return err
		}
		// The kind is discovered a moment before its storage is ready.
		if _, err := a.client.Resource(found.GroupVersionResource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return err
		}
	}
	return nil
}
