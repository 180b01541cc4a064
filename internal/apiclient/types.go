package apiclient

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/kind"
)

// Types has the declared resources of Go types.
type Types map[reflect.Type][]kind.Selector

// Add declares a Go type for a resource. It ignores selectors of several resources, and
// objects without a Go type.
func (ts Types) Add(t reflect.Type, of kind.Selector) {
	known := slices.ContainsFunc(ts[t], func(other kind.Selector) bool { return other.String() == of.String() })
	if t != reflect.TypeFor[*unstructured.Unstructured]() && of.Err() == nil && of.Specific() && !known {
		ts[t] = append(ts[t], of)
	}
}

// Selector returns the resource that a Go type is declared for, or the kind of a type from
// k8s.io/api. ok is false if there is not exactly one.
func (ts Types) Selector(t reflect.Type) (of kind.Selector, ok bool) {
	if declared := ts[t]; len(declared) > 0 {
		return declared[0], len(declared) == 1
	}
	gvk, ok := BuiltIn(t)
	return kind.Kind(gvk.Kind).InGroup(gvk.Group).InVersion(gvk.Version), ok
}

// Resource returns the resource of an object by the options, the TypeMeta, or the Go
// type, in this order.
func (c *Cluster) Resource(ctx context.Context, obj client.Object, o *client.Options) (kind.Info, error) {
	if o.Resource != "" {
		of, err := kind.Parse(o.Resource)
		if err != nil {
			return kind.Info{}, err
		}
		return c.Objects.Select(ctx, of)
	}
	if gvk := kindOf(obj); gvk.Kind != "" && gvk.Version != "" {
		return c.Objects.ByKind(ctx, gvk)
	}
	return c.declared(ctx, obj)
}

// declared returns the resource that the Go type is declared for. If there are several,
// those that the cluster does not have are ignored.
func (c *Cluster) declared(ctx context.Context, obj client.Object) (info kind.Info, err error) {
	selectors := c.Types[reflect.TypeOf(obj)]
	if len(selectors) == 0 {
		if gvk, ok := BuiltIn(reflect.TypeOf(obj)); ok {
			return c.Objects.ByKind(ctx, gvk)
		}
		return info, c.unknownKind(obj)
	}
	var missing error
	for _, of := range selectors {
		found, err := c.Objects.Select(ctx, of)
		switch {
		case err != nil:
			missing = errors.Join(missing, err)
		case info.Plural == "":
			info = found
		case found.GVR() != info.GVR():
			return info, &client.UnknownKindError{Type: fmt.Sprintf("%T", obj), Fix: fmt.Sprintf(
				"the type is declared for both %s and %s; set the TypeMeta of the object, or use client.Of(%q)", info, found, Name(found))}
		}
	}
	if info.Plural == "" {
		return info, missing
	}
	return info, nil
}

// kindOf returns the kind in the TypeMeta of the object.
func kindOf(obj client.Object) schema.GroupVersionKind {
	if t, ok := obj.(interface{ GetObjectKind() schema.ObjectKind }); ok {
		return t.GetObjectKind().GroupVersionKind()
	}
	return schema.GroupVersionKind{}
}

// unknownKind returns an error with the line to add to the declarations.
func (c *Cluster) unknownKind(obj client.Object) error {
	name := fmt.Sprintf("%T", obj)
	if _, untyped := obj.(*unstructured.Unstructured); untyped {
		return &client.UnknownKindError{Type: name, Fix: `set its apiVersion and kind, or use client.Of("GROUP/VERSION/PLURAL")`}
	}
	var lines []string
	for _, i := range c.Objects.Known() {
		if i.Kind == reflect.TypeOf(obj).Elem().Name() && i.Preferred {
			lines = append(lines, fmt.Sprintf("gopf.RegisterType[%s](op, %q)", name, Name(i)))
		}
	}
	if len(lines) == 0 {
		lines = []string{fmt.Sprintf(`gopf.RegisterType[%s](op, "GROUP/VERSION/PLURAL")`, name)}
	}
	return &client.UnknownKindError{Type: name, Fix: "add " + strings.Join(lines, " or ") + " to the declaration of the operator, or set its TypeMeta"}
}
