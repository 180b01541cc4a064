package gopf

import (
	"encoding/json"
	"fmt"
	"reflect"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

func isNilObject(obj Object) bool { return obj == nil || reflect.ValueOf(obj).IsNil() }

// another is a new object of the same type.
func another(obj Object) Object {
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(Object)
}

// fill makes the object be what the cluster says, and nothing of what it was.
func fill(obj Object, b *object.Body, info kind.Info) error {
	b = b.WithType(info.APIVersion(), info.Kind)
	if u, ok := obj.(Unstructured); ok {
		fields, err := b.Fields()
		u.Object = fields
		return err
	}
	fresh := another(obj)
	if err := b.Decode(fresh); err != nil {
		return fmt.Errorf("decode the object into %T: %w", obj, err)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(fresh).Elem())
	return nil
}

// manifest is the object as JSON to be sent, with its kind and namespace, and
// without what Go adds to it: the zero time of creation, and an empty status.
func manifest(obj Object, t kube.Target) (map[string]any, error) {
	var source any = obj
	if u, ok := obj.(Unstructured); ok {
		source = u.Object
	}
	fields, err := toFields(source)
	if err != nil {
		return nil, fmt.Errorf("encode the %T: %w", obj, err)
	}
	fields["apiVersion"], fields["kind"] = t.Info.APIVersion(), t.Info.Kind
	metadata, _ := fields["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		fields["metadata"] = metadata
	}
	if t.Namespace != "" {
		metadata["namespace"] = t.Namespace
	}
	delete(metadata, "managedFields")
	if metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	if status, ok := fields["status"].(map[string]any); ok && len(status) == 0 {
		delete(fields, "status")
	}
	return fields, nil
}

// onlyStatus is a manifest without what the endpoint of the status ignores.
func onlyStatus(fields map[string]any) map[string]any {
	metadata := map[string]any{}
	for key, value := range fields["metadata"].(map[string]any) {
		switch key {
		case "name", "namespace", "uid", "resourceVersion":
			metadata[key] = value
		}
	}
	only := map[string]any{"apiVersion": fields["apiVersion"], "kind": fields["kind"], "metadata": metadata}
	if status, ok := fields["status"]; ok {
		only["status"] = status
	}
	return only
}

// mergePatch is a patch as decoded JSON.
func mergePatch(patch any) (map[string]any, error) {
	switch raw := patch.(type) {
	case nil:
		return nil, fmt.Errorf("the patch is nil")
	case []byte:
		patch = json.RawMessage(raw)
	}
	fields, err := toFields(patch)
	if err != nil {
		return nil, fmt.Errorf("the patch is no JSON object: %w", err)
	}
	return fields, nil
}

// toFields returns the JSON of v as a decoded object, which is a copy. No number
// changes its value.
func toFields(v any) (fields map[string]any, err error) {
	raw, err := json.Marshal(v)
	if err == nil {
		fields, err = jsonvalue.Object(raw)
	}
	if fields == nil {
		fields = map[string]any{}
	}
	return fields, err
}
