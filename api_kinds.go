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

// Kind declares the resource of the type T for use with [Client]: its objects then need
// no TypeMeta. The name is parsed as in [For]. Types passed to [For] and types of
// k8s.io/api need no declaration.
//
//	gopf.Kind[*Backup](op, "example.com/v1/backups")
func Kind[T Object](op *Operator, name string) {
	of, err := kind.Parse(name)
	switch {
	case err != nil:
		op.problem("%w", err)
	case isUntyped[T]():
		op.problem("Kind: untyped objects need no declaration; set their apiVersion and kind")
	case !of.Specific():
		op.problem("Kind: %q does not name one resource; use GROUP/VERSION/PLURAL", name)
	}
	op.types.add(reflect.TypeFor[T](), of)
}

// kinds has the declared resources of Go types.
type kinds map[reflect.Type][]kind.Selector

func (k kinds) add(t reflect.Type, of kind.Selector) {
	known := slices.ContainsFunc(k[t], func(other kind.Selector) bool { return other.String() == of.String() })
	if t != reflect.TypeFor[Unstructured]() && of.Err() == nil && of.Specific() && !known {
		k[t] = append(k[t], of)
	}
}

// UnknownKindError means that the resource of an object is not known.
type UnknownKindError struct {
	Type string // the Go type of the object
	Fix  string // the advice, such as a line to add
}

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("unknown resource of %s: %s", e.Type, e.Fix)
}

// resource returns the resource of an object by the options, the TypeMeta, or the Go
// type, in this order.
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

// declared returns the resource that the Go type is declared for. If there are several,
// those that the cluster does not have are ignored.
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
				"the type is declared for both %s and %s; set the TypeMeta of the object, or use gopf.Of(%q)", info, found, objects.Name(found))}
		}
	}
	if info.Plural == "" {
		return info, missing
	}
	return info, nil
}

// kindOf returns the kind in the TypeMeta of the object.
func kindOf(obj Object) schema.GroupVersionKind {
	if t, ok := obj.(interface{ GetObjectKind() schema.ObjectKind }); ok {
		return t.GetObjectKind().GroupVersionKind()
	}
	return schema.GroupVersionKind{}
}

// unknownKind returns an error with the line to add to the declarations.
func (c *cluster) unknownKind(obj Object) error {
	name := fmt.Sprintf("%T", obj)
	if _, untyped := obj.(Unstructured); untyped {
		return &UnknownKindError{name, `set its apiVersion and kind, or use gopf.Of("GROUP/VERSION/PLURAL")`}
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
