package apiclient

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/hierarchy"
	"gopf.dev/gopf/internal/kube"
)

// owned returns the [manifest] of an object, with a reference to the owner that the options
// name. The object itself is not changed before the response arrives.
func (c *Client) owned(ctx context.Context, obj client.Object, t kube.Target, o *client.Options) (map[string]any, error) {
	fields, err := manifest(obj, t)
	if err != nil || o.Owner == nil {
		return fields, err
	}
	owner, err := c.target(ctx, o.Owner, &client.Options{})
	switch {
	case err != nil:
		return nil, fmt.Errorf("the owner: %w", err)
	case o.Owner.GetUID() == "":
		return nil, errors.New("the owner has no UID; pass an object that was read or created")
	}
	parent := &unstructured.Unstructured{Object: map[string]any{}}
	parent.SetAPIVersion(owner.Info.APIVersion())
	parent.SetKind(owner.Info.Kind)
	parent.SetNamespace(owner.Namespace)
	parent.SetName(o.Owner.GetName())
	parent.SetUID(o.Owner.GetUID())
	if owner.Namespace != "" && !t.Info.Namespaced {
		return nil, &hierarchy.OutsideError{Owner: owner.Info.Kind + " " + parent.GetName(), Namespace: owner.Namespace}
	}
	if err := hierarchy.AppendOwnerReference(fields, parent); err != nil {
		return nil, err
	}
	return fields, nil
}
