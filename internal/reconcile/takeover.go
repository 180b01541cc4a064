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

// takeOver makes the operator the manager of the fields that its former version, or a
// former name of it, has set on a child. The apply that follows removes those of them that
// are no longer declared.
func (x *run) takeOver(ctx context.Context, target kube.Target) error {
	body, err := x.Objects.Get(ctx, target)
	if err != nil {
		return err
	}
	after, changed := children.TakeOver(managedFields(body), x.Name, target.Info.APIVersion(), x.Owner.UID)
	if !changed {
		return nil
	}
	_, err = x.setManagedFields(ctx, target, body, after)
	return err
}

// release makes the operator the only manager of its fields on an adopted object. kubectl
// and Helm keep the others. It returns the newest state of the object.
func (x *run) release(ctx context.Context, target kube.Target, body *object.Body) (*object.Body, error) {
	after, changed := children.Release(managedFields(body), x.Name)
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

// managedFields returns the managedFields of a body that has them.
func managedFields(body *object.Body) []children.FieldEntry {
	var head struct {
		Metadata struct {
			ManagedFields []children.FieldEntry `json:"managedFields"`
		} `json:"metadata"`
	}
	if json.Unmarshal(body.Raw(), &head) != nil {
		return nil
	}
	return head.Metadata.ManagedFields
}
