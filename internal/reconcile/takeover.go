package reconcile

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// largestManaged is the size of the largest managedFields that are decoded, in bytes. Clients
// of the namespace of a child can make them large, and a byte of them takes dozens of bytes
// of memory. Those of usual objects have a few KB.
const largestManaged = 128 << 10

// takeOver makes the operator the manager of the fields that its former version, or a
// former name of it, has set on a child. The apply that follows removes those of them that
// are no longer declared. Managed fields beyond the limit stay as they are.
func (x *run) takeOver(ctx context.Context, target kube.Target) error {
	leave, err := x.enter(ctx, x.Owner.Namespace)
	if err != nil {
		return err
	}
	defer leave()
	body, err := x.Objects.Get(ctx, target)
	if err != nil {
		return err
	}
	entries, ok := managedFields(body)
	if !ok {
		x.Log.Warn("The managedFields of a child are too large, so the operator does not take over the fields of its former manager.",
			"child", target.Name, "namespace", target.Namespace, "kind", target.Info.Kind, "bytes", body.ManagedSize())
		return nil
	}
	after, changed := children.TakeOver(entries, x.Name, target.Info.APIVersion(), x.Owner.UID)
	if !changed {
		return nil
	}
	_, err = x.setManagedFields(ctx, target, body, after)
	return err
}

// release makes the operator the only manager of its fields on an adopted object. kubectl
// and Helm keep the others. It returns the newest state of the object. Managed fields beyond
// the limit stay as they are.
func (x *run) release(ctx context.Context, target kube.Target, body *object.Body) (*object.Body, error) {
	leave, err := x.enter(ctx, x.Owner.Namespace)
	if err != nil {
		return nil, err
	}
	defer leave()
	entries, _ := managedFields(body)
	after, changed := children.Release(entries, x.Name)
	if !changed {
		return body, nil
	}
	return x.setManagedFields(ctx, target, body, after)
}

// setManagedFields replaces the managedFields of exactly this version of a child.
func (x *run) setManagedFields(ctx context.Context, target kube.Target, body *object.Body, entries []children.FieldEntry) (*object.Body, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": body.ResourceVersion},
	})
	if err != nil {
		return nil, err
	}
	x.result.Written++
	after, err := x.Objects.API.Patch(ctx, target, types.JSONPatchType, patch, kube.FieldManager(x.Name))
	if err != nil {
		return nil, fmt.Errorf("take over the fields of the former manager: %w", err)
	}
	return after, nil
}

// managedFields returns the managedFields of a body that has them. ok is false if they are
// too large.
func managedFields(body *object.Body) (entries []children.FieldEntry, ok bool) {
	if body.ManagedSize() > largestManaged {
		return nil, false
	}
	var head struct {
		Metadata struct {
			ManagedFields []children.FieldEntry `json:"managedFields"`
		} `json:"metadata"`
	}
	if json.Unmarshal(body.Raw(), &head) != nil {
		return nil, true
	}
	return head.Metadata.ManagedFields, true
}
