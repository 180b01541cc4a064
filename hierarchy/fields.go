package hierarchy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"gopf.dev/gopf/internal/jsonvalue"
)

// fields is an object as decoded JSON.
type fields map[string]any

// asJSON converts the metadata that this package changes to the types of decoded JSON. Users
// may have written map[string]string for labels.
func (f fields) asJSON() error {
	metadata := map[string]any(nil)
	if err := convert(f, "metadata", &metadata); err != nil || metadata == nil {
		return err
	}
	var labels map[string]any
	var references []any
	return errors.Join(convert(metadata, "labels", &labels), convert(metadata, "ownerReferences", &references))
}

// convert converts the value under the key, if there is one, to the type.
func convert[T any](in map[string]any, key string, as *T) error {
	value := in[key]
	if value == nil {
		return nil
	}
	if v, ok := value.(T); ok {
		*as = v
		return nil
	}
	raw, err := json.Marshal(value)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(raw, as)
	}
	if err != nil {
		return fmt.Errorf("%s of an object is %T: %w", key, value, err)
	}
	in[key] = *as
	return nil
}

func (f fields) metadata() map[string]any { return inner(f, "metadata") }

// inner returns the map under the key, and creates it if it does not exist.
func inner(of map[string]any, key string) map[string]any {
	m, ok := of[key].(map[string]any)
	if !ok {
		m = map[string]any{}
		of[key] = m
	}
	return m
}

func (f fields) object() metav1.Object { return &unstructured.Unstructured{Object: f} }

func (f fields) label(labels map[string]string, forced bool) {
	all := inner(f.metadata(), "labels")
	for key, value := range labels {
		if _, has := all[key]; !has || forced {
			all[key] = value
		}
	}
}

func (f fields) labelNested(paths []string, labels map[string]string, forced bool) error {
	parts, err := f.parts(paths)
	if err != nil {
		return err
	}
	for _, part := range parts {
		part.label(labels, forced)
	}
	return nil
}

// parts returns the existing parts at the paths.
func (f fields) parts(paths []string) (found []fields, err error) {
	for _, text := range paths {
		path, err := jsonvalue.ParsePath(text)
		if err != nil {
			return nil, err
		}
		part := map[string]any(f)
		for i, key := range path {
			value := part[key]
			if part, _ = value.(map[string]any); part == nil && value != nil {
				return nil, fmt.Errorf("%s: %s is %T, not an object", text, path[:i+1], value)
			}
		}
		if part == nil {
			continue
		}
		if err := fields(part).asJSON(); err != nil {
			return nil, err
		}
		found = append(found, part)
	}
	return found, nil
}

// isNamed reports whether the object has a name or a generateName, even an empty one.
func (f fields) isNamed() bool {
	metadata, _ := f["metadata"].(map[string]any)
	_, named := metadata["name"]
	_, prefixed := metadata["generateName"]
	return named || prefixed
}

func (f fields) name(name, prefix string) {
	f.set("name", name)
	f.set("generateName", prefix)
}

func (f fields) namespace() string {
	metadata, _ := f["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	return namespace
}

func (f fields) isPlaced() bool {
	metadata, _ := f["metadata"].(map[string]any)
	return metadata["namespace"] != nil
}

func (f fields) place(namespace string) { f.set("namespace", namespace) }

// set removes the key if the value is empty.
func (f fields) set(key, value string) {
	if value == "" {
		delete(f.metadata(), key)
		return
	}
	f.metadata()[key] = value
}

func (f fields) references() []any {
	metadata, _ := f["metadata"].(map[string]any)
	refs, _ := metadata["ownerReferences"].([]any)
	return refs
}

func (f fields) refersTo(owner types.UID) bool {
	return slices.ContainsFunc(f.references(), refersTo(owner))
}

func refersTo(owner types.UID) func(any) bool {
	return func(ref any) bool {
		of, ok := ref.(map[string]any)
		uid, _ := of["uid"].(string)
		return ok && uid == string(owner)
	}
}

func (f fields) own(ref metav1.OwnerReference) {
	entry := map[string]any{}
	for key, flag := range map[string]*bool{"controller": ref.Controller, "blockOwnerDeletion": ref.BlockOwnerDeletion} {
		if flag != nil {
			entry[key] = *flag
		}
	}
	for key, value := range map[string]string{"apiVersion": ref.APIVersion, "kind": ref.Kind, "name": ref.Name, "uid": string(ref.UID)} {
		if value != "" {
			entry[key] = value
		}
	}
	f.metadata()["ownerReferences"] = append(slices.Clip(f.references()), entry)
}

func (f fields) disown(owner types.UID) {
	left := slices.DeleteFunc(slices.Clone(f.references()), refersTo(owner))
	if left == nil {
		left = []any{}
	}
	f.metadata()["ownerReferences"] = left
}
