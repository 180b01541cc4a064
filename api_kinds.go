package gopf

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/objects"
	"gopf.dev/gopf/kind"
)

// Kind tells the operator which resource the type T is for, so that objects of
// it need no TypeMeta in what handlers do with their [Client]. Types that are
// named in [For] are known already, and so are those of k8s.io/api.
func Kind[T Object](op *Operator, name string) {
	of, err := kind.Parse(name)
	switch {
	case err != nil:
		op.problem("%w", err)
	case isUntyped[T]():
		op.problem("Kind: objects without a type of their own have their kind in themselves")
	case !of.Specific():
		op.problem("Kind: %q does not name one resource", name)
	}
	op.types.add(reflect.TypeFor[T](), of)
}

// kinds are the resources that Go types are declared for.
type kinds map[reflect.Type][]kind.Selector

func (k kinds) add(t reflect.Type, of kind.Selector) {
	known := slices.ContainsFunc(k[t], func(other kind.Selector) bool { return other.String() == of.String() })
	if t != reflect.TypeFor[Unstructured]() && of.Err() == nil && of.Specific() && !known {
		k[t] = append(k[t], of)
	}
}

// UnknownKindError tells that nobody knows which resource an object is of.
type UnknownKindError struct {
	Type string // of the object in Go
	Fix  string // what to do
}

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("it is not known which resource a %s is of: %s", e.Type, e.Fix)
}

// resource finds out which resource is meant: by the options, by what the object
// says itself, or by its type.
func (c *cluster) resource(ctx context.Context, obj Object, s *callSpec) (kind.Info, error) {
	of, named, err := s.selector()
	switch {
	case err != nil:
		return kind.Info{}, err
	case named:
		return c.objects.Select(ctx, of)
	}
	if gvk := kindOf(obj); gvk.Kind != "" && gvk.Version != "" {
		return c.objects.ByKind(ctx, gvk)
	}
	return c.declared(ctx, obj)
}

// declared finds the resource that the type of the object is declared for. One
// that the cluster does not have does not count beside one that it has.
func (c *cluster) declared(ctx context.Context, obj Object) (info kind.Info, err error) {
	selectors := c.types[reflect.TypeOf(obj)]
	if len(selectors) == 0 {
		if gvk, ok := builtIn(reflect.TypeOf(obj)); ok {
			return c.objects.ByKind(ctx, gvk)
		}
		return info, c.unknownKind(obj)
	}
	var missing error
	for _, of := range selectors {
		found, err := c.objects.Select(ctx, of)
		switch {
		case err != nil:
			missing = errors.Join(missing, err)
		case info.Plural == "":
			info = found
		case found.GVR() != info.GVR():
			return info, &UnknownKindError{fmt.Sprintf("%T", obj), fmt.Sprintf(
				"the type is declared for both %s and %s; set the TypeMeta of the object, or say gopf.Of(%q)", info, found, objects.Name(found))}
		}
	}
	if info.Plural == "" {
		return info, missing
	}
	return info, nil
}

// kindOf is what the object says about itself.
func kindOf(obj Object) schema.GroupVersionKind {
	if t, ok := obj.(interface{ GetObjectKind() schema.ObjectKind }); ok {
		return t.GetObjectKind().GroupVersionKind()
	}
	return schema.GroupVersionKind{}
}

// unknownKind says which line is missing, as exactly as can be.
func (c *cluster) unknownKind(obj Object) error {
	name := fmt.Sprintf("%T", obj)
	if _, untyped := obj.(Unstructured); untyped {
		return &UnknownKindError{name, `set its apiVersion and kind, or say gopf.Of("GROUP/VERSION/PLURAL")`}
	}
	var lines []string
	for _, i := range c.objects.Known() {
		if i.Kind == reflect.TypeOf(obj).Elem().Name() && i.Preferred {
			lines = append(lines, fmt.Sprintf("gopf.Kind[%s](op, %q)", name, objects.Name(i)))
		}
	}
	if len(lines) == 0 {
		lines = []string{fmt.Sprintf(`gopf.Kind[%s](op, "GROUP/VERSION/PLURAL")`, name)}
	}
	return &UnknownKindError{name, "add " + strings.Join(lines, " or ") + " to the declaration of the operator, or set its TypeMeta"}
}
