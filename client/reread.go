package client

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unknownResource is the resource in conflicts that are found without the API server.
var unknownResource = schema.GroupResource{Resource: "objects"}

// reread reads an object with all of its fields. The type may lack some, and a merge patch
// replaces whole lists.
func reread(ctx context.Context, api Client, obj Object, o *Options) (*unstructured.Unstructured, error) {
	raw := &unstructured.Unstructured{Object: map[string]any{}}
	raw.SetName(obj.GetName())
	raw.SetNamespace(obj.GetNamespace())
	place := o.place()
	if o.Resource == "" {
		fields, err := fieldsOf(obj)
		if err != nil {
			return nil, err
		}
		typed := &unstructured.Unstructured{Object: fields}
		if typed.GetKind() == "" {
			return nil, fmt.Errorf("edit: %T has no TypeMeta, so its lists cannot be edited safely; add one, or pass client.Of", obj)
		}
		raw.SetAPIVersion(typed.GetAPIVersion())
		raw.SetKind(typed.GetKind())
	}
	if err := api.Get(ctx, raw, place...); err != nil {
		return nil, err
	}
	return raw, nil
}

// hasList reports whether a merge patch replaces a list.
func hasList(change any) bool {
	switch change := change.(type) {
	case map[string]any:
		for _, value := range change {
			if hasList(value) {
				return true
			}
		}
	case []any:
		return true
	}
	return false
}
