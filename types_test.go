package gopf

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/kind"
)

// Gadget is a type without TypeMeta.
type Gadget struct{ metav1.ObjectMeta }

// Gizmo is a type with TypeMeta.
type Gizmo struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func TestResourceOfAnObject(t *testing.T) {
	info := func(group, plural, kindName string) kind.Info {
		return kind.Info{Group: group, Version: "v1", Plural: plural, Kind: kindName, Preferred: true}
	}
	everything := []kind.Info{info("a.com", "gadgets", "Gadget"), info("b.com", "gadgets", "Gadget"), info("a.com", "gizmos", "Gizmo")}
	typeMeta := func(apiVersion, kind string) *Gizmo {
		return &Gizmo{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
	}
	for name, test := range map[string]struct {
		declare func(*Operator)
		obj     Object
		of      string
		want    string // the resource, or a part of the error
	}{
		"by its handlers":       {func(op *Operator) { For[*Gadget](op, "a.com/v1/gadgets") }, &Gadget{}, "", "gadgets.v1.a.com"},
		"by a line":             {func(op *Operator) { RegisterType[*Gadget](op, "b.com/v1/gadgets") }, &Gadget{}, "", "gadgets.v1.b.com"},
		"by TypeMeta":           {nil, typeMeta("a.com/v1", "Gizmo"), "", "gizmos.v1.a.com"},
		"TypeMeta before type":  {func(op *Operator) { RegisterType[*Gizmo](op, "b.com/v1/gadgets") }, typeMeta("a.com/v1", "Gadget"), "", "gadgets.v1.a.com"},
		"option before all":     {func(op *Operator) { RegisterType[*Gizmo](op, "a.com/v1/gizmos") }, typeMeta("a.com/v1", "Gizmo"), "b.com/gadgets", "gadgets.v1.b.com"},
		"the same in two ways":  {func(op *Operator) { For[*Gadget](op, "gadgets.a.com"); RegisterType[*Gadget](op, "a.com/v1/gadgets") }, &Gadget{}, "", "gadgets.v1.a.com"},
		"two resources":         {func(op *Operator) { For[*Gadget](op, "gadgets.a.com"); For[*Gadget](op, "gadgets.b.com") }, &Gadget{}, "", "the type is declared for both gadgets.v1.a.com and gadgets.v1.b.com"},
		"one that is missing":   {func(op *Operator) { For[*Gadget](op, "gadgets.z.com"); For[*Gadget](op, "gadgets.b.com") }, &Gadget{}, "", "gadgets.v1.b.com"},
		"only one, missing":     {func(op *Operator) { For[*Gadget](op, "gadgets.z.com") }, &Gadget{}, "", "the cluster has no resource z.com/gadgets"},
		"handlers of anything":  {func(op *Operator) { For[*Gadget](op, "*") }, &Gadget{}, "", `add gopf.RegisterType[*gopf.Gadget](op, "a.com/v1/gadgets") or gopf.RegisterType[*gopf.Gadget](op, "b.com/v1/gadgets")`},
		"nothing says":          {nil, &Gizmo{}, "", `add gopf.RegisterType[*gopf.Gizmo](op, "a.com/v1/gizmos") to the declaration`},
		"an ambiguous name":     {nil, &Gadget{}, "gadgets", "is ambiguous"},
		"a kind from elsewhere": {nil, typeMeta("c.com/v1", "Gizmo"), "", "the cluster has no resource Gizmo of c.com/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			op := New()
			if test.declare != nil {
				test.declare(op)
			}
			if err := op.Err(); err != nil {
				t.Fatal(err)
			}
			c := (&apiclient.Cluster{Objects: &apiclient.Objects{Known: func() []kind.Info { return everything }}, Types: op.types}).For("", nil, nil)
			got, err := c.Resource(t.Context(), test.obj, &client.Options{Resource: test.of})
			if err != nil && !strings.Contains(err.Error(), test.want) || err == nil && got.String() != test.want {
				t.Errorf("got %v, %v; want %s", got, err, test.want)
			}
		})
	}
}

func TestRegisterTypeReportsInvalidDeclarations(t *testing.T) {
	op := New()
	RegisterType[*Gadget](op, "a/b/c/d/e")
	RegisterType[*Gadget](op, "a/b/c/d")
	RegisterType[*Gadget](op, "*")
	RegisterType[Unstructured](op, "v1/pods")
	err := op.Err()
	for _, says := range []string{"too many parts", "names a subresource", "does not name one resource", "untyped objects need no declaration", "types_test.go:"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want something with %q", err, says)
		}
	}
	if len(op.types) != 0 {
		t.Errorf("got %v", op.types)
	}
}
