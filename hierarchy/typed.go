package hierarchy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"gopf.dev/gopf/internal/jsonvalue"
)

// typed is an object of a Go type. Its empty fields count as absent.
type typed struct{ metav1.Object }

func (t typed) object() metav1.Object { return t.Object }

func (t typed) label(labels map[string]string, forced bool) {
	all := maps.Clone(t.GetLabels())
	if all == nil {
		all = make(map[string]string, len(labels))
	}
	for key, value := range labels {
		if _, has := all[key]; !has || forced {
			all[key] = value
		}
	}
	t.SetLabels(all)
}

// labelNested converts the object to JSON, because paths refer to JSON. Fields of the object
// that are not in JSON stay unchanged.
func (t typed) labelNested(paths []string, labels map[string]string, forced bool) error {
	if len(paths) == 0 {
		return nil
	}
	raw, err := json.Marshal(t.Object)
	if err != nil {
		return fmt.Errorf("encode the %T: %w", t.Object, err)
	}
	decoded, err := jsonvalue.Object(raw)
	f := fields(decoded)
	if err != nil {
		return fmt.Errorf("decode the JSON of the %T: %w", t.Object, err)
	}
	if err := f.labelNested(paths, labels, forced); err != nil {
		return err
	}
	delete(f, "metadata") // it is not a nested part, and has not changed
	if raw, err = json.Marshal(f); err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(raw, t.Object)
	}
	if err != nil {
		return fmt.Errorf("decode the labeled %T: %w", t.Object, err)
	}
	return nil
}

func (t typed) isNamed() bool { return t.GetName() != "" || t.GetGenerateName() != "" }

func (t typed) name(name, prefix string) {
	t.SetName(name)
	t.SetGenerateName(prefix)
}

func (t typed) namespace() string      { return t.GetNamespace() }
func (t typed) isPlaced() bool         { return t.GetNamespace() != "" }
func (t typed) place(namespace string) { t.SetNamespace(namespace) }

func (t typed) refersTo(owner types.UID) bool {
	return slices.ContainsFunc(t.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner })
}

func (t typed) own(ref metav1.OwnerReference) {
	t.SetOwnerReferences(append(slices.Clip(t.GetOwnerReferences()), ref))
}

func (t typed) disown(owner types.UID) {
	left := slices.Clone(t.GetOwnerReferences())
	t.SetOwnerReferences(slices.DeleteFunc(left, func(r metav1.OwnerReference) bool { return r.UID == owner }))
}
