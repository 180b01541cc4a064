package metacontroller

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// uidLabel is the label of children whose controller generates the selector.
const uidLabel = "controller-uid"

// Ownership is the decision about an object that may be a child.
type Ownership int

// The decisions of [Claim].
const (
	Foreign Ownership = iota // not a child of this parent
	Owned                    // a child
	Adopt                    // an orphan that becomes a child
	Release                  // a child that no longer matches the selector
)

// Claim decides whether an object is a child of a parent. A parent that is being deleted
// neither adopts nor releases children.
func Claim(parent, object metav1.Object, selector labels.Selector) Ownership {
	matches := selector.Matches(labels.Set(object.GetLabels()))
	ref := metav1.GetControllerOfNoCopy(object)
	leaving := parent.GetDeletionTimestamp() != nil
	switch {
	case ref != nil && ref.UID != parent.GetUID():
		return Foreign
	case ref != nil && matches:
		return Owned
	case ref != nil && !leaving:
		return Release
	case ref == nil && matches && !leaving && object.GetDeletionTimestamp() == nil:
		return Adopt
	default:
		return Foreign
	}
}

// Selector returns the selector of a parent's children. With generate, it is the label
// controller-uid, and otherwise spec.selector of the parent. Each event of an orphan is compared
// with the selectors of the parents in its namespace, so a selector with too many parts is an error.
func Selector(parent *unstructured.Unstructured, generate bool) (labels.Selector, error) {
	if generate {
		return labels.SelectorFromSet(labels.Set{uidLabel: string(parent.GetUID())}), nil
	}
	value, _, _ := unstructured.NestedFieldNoCopy(parent.Object, "spec", "selector")
	field, _ := value.(map[string]any)
	matched, _ := field["matchLabels"].(map[string]any)
	expressions, _ := field["matchExpressions"].([]any)
	values := len(matched)
	for _, item := range expressions {
		e, _ := item.(map[string]any)
		list, _ := e["values"].([]any)
		values += len(list)
	}
	if err := checkParts(len(matched)+len(expressions), values); err != nil { // before the decoding, which takes time
		return nil, fmt.Errorf(".spec.selector of %s: %w", describe(parent), err)
	}
	var selector metav1.LabelSelector
	if err := convert(field, &selector); err != nil {
		return nil, err
	}
	if len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0 {
		return nil, errors.New(".spec.selector must have either matchLabels, matchExpressions, or both")
	}
	return metav1.LabelSelectorAsSelector(&selector)
}

// controllerRef returns the reference by which a parent owns its children.
func controllerRef(parent *unstructured.Unstructured) map[string]any {
	return map[string]any{
		"apiVersion": parent.GetAPIVersion(), "kind": parent.GetKind(), "name": parent.GetName(), "uid": string(parent.GetUID()),
		"controller": true, "blockOwnerDeletion": true,
	}
}

// own adds the reference of the parent to an object.
func own(parent, object *unstructured.Unstructured) {
	refs, _, _ := unstructured.NestedSlice(object.Object, "metadata", "ownerReferences")
	refs = append(refs, controllerRef(parent))
	_ = unstructured.SetNestedSlice(object.Object, refs, "metadata", "ownerReferences")
}

// disown removes the reference of the parent from an object.
func disown(parent, object *unstructured.Unstructured) {
	refs := slices.DeleteFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == parent.GetUID() })
	object.SetOwnerReferences(refs)
}
