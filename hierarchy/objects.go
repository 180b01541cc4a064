package hierarchy

import (
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// child is an object in any supported form.
type child interface {
	object() metav1.Object
	label(labels map[string]string, forced bool)
	labelNested(paths []string, labels map[string]string, forced bool) error
	isNamed() bool
	name(name, prefix string)
	namespace() string
	isPlaced() bool // has a namespace, even if it is empty
	place(namespace string)
	refersTo(owner types.UID) bool
	own(metav1.OwnerReference)
	disown(owner types.UID)
}

// Objects returns all children in one list. Maps are wrapped by an
// [unstructured.Unstructured], through which they can be changed.
func Objects(children any) (all []metav1.Object, err error) {
	err = each(children, func(c child) error {
		all = append(all, c.object())
		return nil
	})
	return all, err
}

// each calls do for all objects in children.
func each(children any, do func(child) error) error {
	if children == nil {
		return nil
	}
	c, err := asChild(children)
	switch {
	case err != nil:
		return err
	case c != nil:
		return do(c)
	}
	list := reflect.ValueOf(children)
	if k := list.Kind(); k != reflect.Slice && k != reflect.Array {
		return unsupported(children)
	}
	for i := range list.Len() {
		if err := each(list.Index(i).Interface(), do); err != nil {
			return err
		}
	}
	return nil
}

// asChild returns v as a child. nil without an error means that v is not an object.
func asChild(v any) (child, error) {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return nil, errors.New("the object is a nil map, which cannot be changed")
		}
		return fields(v), fields(v).asJSON()
	case *unstructured.Unstructured:
		if v == nil {
			return nil, unsupported(v)
		}
		if v.Object == nil {
			v.Object = map[string]any{}
		}
		return fields(v.Object), fields(v.Object).asJSON()
	case metav1.Object:
		if isNil(v) {
			return nil, unsupported(v)
		}
		return typed{v}, nil
	}
	return nil, nil
}

func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

func unsupported(v any) error {
	if isNil(v) {
		return fmt.Errorf("the object is a nil %T", v)
	}
	return fmt.Errorf("%T is not an object: it must be a pointer to a struct with metav1.ObjectMeta in it, an *unstructured.Unstructured, "+
		"or a map[string]any", v)
}

// parent holds the properties of an owner that children need.
type parent struct {
	metav1.OwnerReference
	namespace string
	labels    map[string]string
}

func identify(owner any) (parent, error) {
	var of metav1.Object
	switch v := owner.(type) {
	case nil:
		return parent{}, errors.New("the owner is nil")
	case map[string]any:
		of = &unstructured.Unstructured{Object: v}
	case metav1.Object:
		if isNil(v) {
			return parent{}, fmt.Errorf("the owner: %w", unsupported(v))
		}
		of = v
	default:
		return parent{}, fmt.Errorf("the owner: %w", unsupported(owner))
	}
	p := parent{
		OwnerReference: metav1.OwnerReference{Name: of.GetName(), UID: of.GetUID()},
		namespace:      of.GetNamespace(), labels: of.GetLabels(),
	}
	if t, ok := of.(interface{ GetObjectKind() schema.ObjectKind }); ok {
		p.APIVersion, p.Kind = t.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	}
	return p, nil
}

func (p parent) reference(o options) metav1.OwnerReference {
	ref := p.OwnerReference
	if !o.noController {
		ref.Controller = new(!o.notController)
	}
	if !o.noBlocking {
		ref.BlockOwnerDeletion = new(!o.notBlocking)
	}
	return ref
}
