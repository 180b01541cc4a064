package apiclient

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

func isNilObject(obj client.Object) bool { return obj == nil || reflect.ValueOf(obj).IsNil() }

// another returns a new object of the same type.
func another(obj client.Object) client.Object {
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
}

// fill replaces obj with the received object. No earlier field of obj is kept.
func fill(obj client.Object, b *object.Body, info kind.Info) error {
	b = b.WithType(info.APIVersion(), info.Kind)
	if u, ok := obj.(*unstructured.Unstructured); ok {
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

// Manifest returns the JSON of the object at an endpoint as for [Client.Apply]. The JSON is a
// copy that the caller may change.
func Manifest(obj client.Object, t kube.Target) (map[string]any, error) {
	fields, err := manifest(obj, t)
	if err == nil && t.Info.HasStatus() {
		delete(fields, "status")
	}
	return fields, err
}

// ManifestMemory returns the memory that [Manifest] takes for the texts of an object, in bytes:
// for its JSON, and for the copy.
func ManifestMemory(obj client.Object) int { return 2 * jsonvalue.TextSize(obj, maxTexts) }

// manifest returns the object as JSON for a request, with its kind and namespace. It
// omits zero values that Go adds: the creation time and an empty status.
func manifest(obj client.Object, t kube.Target) (map[string]any, error) {
	var source any = obj
	if u, ok := obj.(*unstructured.Unstructured); ok {
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

// onlyStatus returns the parts of a manifest that the status subresource accepts.
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

// mergePatch returns a patch as decoded JSON.
func mergePatch(patch any) (map[string]any, error) {
	switch raw := patch.(type) {
	case nil:
		return nil, fmt.Errorf("the patch is nil; pass a map or a struct")
	case []byte:
		patch = json.RawMessage(raw)
	}
	fields, err := toFields(patch)
	if err != nil {
		return nil, fmt.Errorf("encode the patch as a JSON object: %w", err)
	}
	return fields, nil
}

// maxTexts limits the texts of an object or patch that a handler writes, in bytes, because API
// servers accept no larger request. Values of Go may share one text that their JSON repeats.
const maxTexts = 3 << 20

// toFields returns a copy of v as a decoded JSON object. Numbers keep their exact
// values.
func toFields(v any) (fields map[string]any, err error) {
	if jsonvalue.TextSize(v, maxTexts) > maxTexts {
		return nil, fmt.Errorf("it has more than %d MiB, and API servers accept no larger request", maxTexts>>20)
	}
	raw, err := jsonvalue.Marshal(v)
	if err == nil {
		fields, err = jsonvalue.Object(raw)
	}
	if fields == nil {
		fields = map[string]any{}
	}
	return fields, err
}
