package hierarchy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/hierarchy"
)

// Job is a kind with nested metadata in its spec.
type Job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec           `json:"spec"`
	Extra  map[string]any `json:"extra,omitempty"`
	Secret string         `json:"-"`
}

type Spec struct {
	Template Template  `json:"template"`
	Other    *Template `json:"other,omitempty"`
	Size     int       `json:"size"`
	Names    []string  `json:"names,omitempty"`
}

type Template struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Image             string `json:"image,omitempty"`
}

func owner() *Job {
	return &Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "parent", UID: "u1", Labels: map[string]string{"app": "x"}},
	}
}

// adopted is the result for an empty child of any form.
const adopted = `{"generateName":"parent-","namespace":"ns","labels":{"app":"x"},"ownerReferences":[
	{"apiVersion":"example.com/v1","kind":"Job","name":"parent","uid":"u1","controller":true,"blockOwnerDeletion":true}]}`

func metadata(t *testing.T, child any) any {
	t.Helper()
	raw, err := json.Marshal(child)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	return fields["metadata"]
}

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestChildrenOfEveryFormAreAdopted(t *testing.T) {
	untypedOwner := map[string]any{"apiVersion": "example.com/v1", "kind": "Job",
		"metadata": map[string]any{"namespace": "ns", "name": "parent", "uid": "u1", "labels": map[string]any{"app": "x"}}}
	for name, parent := range map[string]any{"typed": owner(), "map": untypedOwner, "unstructured": &unstructured.Unstructured{Object: untypedOwner}} {
		t.Run(name, func(t *testing.T) {
			children := map[string]any{
				"typed": &Job{}, "map": map[string]any{}, "unstructured": &unstructured.Unstructured{},
			}
			for form, child := range children {
				if err := hierarchy.Adopt(child, parent); err != nil {
					t.Errorf("%s: %v", form, err)
				}
				if u, ok := child.(*unstructured.Unstructured); ok {
					child = u.Object
				}
				if diff := cmp.Diff(parsed(t, adopted), metadata(t, child)); diff != "" {
					t.Errorf("%s: -want +got\n%s", form, diff)
				}
			}
		})
	}
}

func TestNestedListsOfChildrenAreAdopted(t *testing.T) {
	one, two, three := &Job{}, map[string]any{}, &Job{}
	if err := hierarchy.Adopt([]any{one, nil, []map[string]any{two}, []*Job{three}}, owner()); err != nil {
		t.Fatal(err)
	}
	for _, child := range []any{one, two, three} {
		if diff := cmp.Diff(parsed(t, adopted), metadata(t, child)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

func TestAdoptingTwiceChangesNothing(t *testing.T) {
	child := &Job{}
	for range 2 {
		if err := hierarchy.Adopt(child, owner()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(parsed(t, adopted), metadata(t, child)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestExistingMetadataIsKeptUnlessForced(t *testing.T) {
	for name, test := range map[string]struct {
		opts []hierarchy.Option
		want string // the name, the prefix, the label
	}{
		"by default": {nil, "own||y"},
		"strict":     {[]hierarchy.Option{hierarchy.Strict()}, "own||y"},
		"forced":     {[]hierarchy.Option{hierarchy.Forced()}, "|parent-|x"},
		"both":       {[]hierarchy.Option{hierarchy.Forced(), hierarchy.Strict()}, "parent||x"},
	} {
		t.Run(name, func(t *testing.T) {
			child := &Job{ObjectMeta: metav1.ObjectMeta{Name: "own", Labels: map[string]string{"app": "y"}}}
			if err := hierarchy.Adopt(child, owner(), test.opts...); err != nil {
				t.Fatal(err)
			}
			if got := child.Name + "|" + child.GenerateName + "|" + child.Labels["app"]; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestNestedMetadataOfTypedChildrenIsLabeled(t *testing.T) {
	child := &Job{Secret: "kept", Extra: map[string]any{"n": int64(7), "part": map[string]any{"a": int64(1)}}}
	child.Spec = Spec{Template: Template{Image: "i"}, Size: 3, Names: []string{"a", "b"}}
	child.Spec.Template.Labels = map[string]string{"own": "1", "app": "mine"}
	if err := hierarchy.Adopt(child, owner(), hierarchy.Nested("spec.template", "spec.other", "extra.part")); err != nil {
		t.Fatal(err)
	}
	want := Spec{Template: Template{Image: "i", ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"own": "1", "app": "mine"}}}, Size: 3, Names: []string{"a", "b"}}
	if diff := cmp.Diff(want, child.Spec); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	part := map[string]any{"a": int64(1), "metadata": map[string]any{"labels": map[string]any{"app": "x"}}}
	if diff := cmp.Diff(map[string]any{"n": int64(7), "part": part}, child.Extra); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if child.Secret != "kept" || child.Labels["app"] != "x" || child.Name != "" || child.GenerateName != "parent-" {
		t.Errorf("got %+v", child)
	}
}

func TestGoMapsInMetadataAreAccepted(t *testing.T) {
	child := map[string]any{"metadata": map[string]any{
		"labels":          map[string]string{"own": "1"},
		"ownerReferences": []map[string]any{{"uid": "other"}},
	}}
	if err := hierarchy.Adopt(child, owner()); err != nil {
		t.Fatal(err)
	}
	u := unstructured.Unstructured{Object: child}
	if diff := cmp.Diff(map[string]string{"own": "1", "app": "x"}, u.GetLabels()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if refs := u.GetOwnerReferences(); len(refs) != 2 || refs[0].UID != "other" || refs[1].UID != "u1" {
		t.Errorf("got %v", refs)
	}
}

func TestAnOwnerCannotHaveChildrenInOtherNamespaces(t *testing.T) {
	for name, adopt := range map[string]func(child any) error{
		"adopt":  func(child any) error { return hierarchy.Adopt(child, owner()) },
		"append": func(child any) error { return hierarchy.AppendOwnerReference(child, owner()) },
	} {
		t.Run(name, func(t *testing.T) {
			child := &Job{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere"}}
			err := adopt(child)
			if outside, ok := errors.AsType[*hierarchy.OutsideError](err); !ok || outside.Child != "elsewhere" || outside.Namespace != "ns" {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(&Job{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere"}}, child); diff != "" {
				t.Errorf("the child was changed: -want +got\n%s", diff)
			}
		})
	}
	child := &Job{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere"}}
	if err := hierarchy.Adopt(child, owner(), hierarchy.Forced()); err != nil || child.Namespace != "ns" {
		t.Errorf("forced, it should have moved to its owner: %v, %v", child.Namespace, err)
	}
}

func TestAClusterScopedOwnerCanHaveChildrenAnywhere(t *testing.T) {
	parent := owner()
	parent.Namespace = ""
	for _, namespace := range []string{"", "anywhere"} {
		child := &Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
		if err := hierarchy.Adopt(child, parent); err != nil || child.Namespace != namespace || len(child.OwnerReferences) != 1 {
			t.Errorf("got %+v, %v", child.ObjectMeta, err)
		}
	}
}

func TestReferencesAreRemoved(t *testing.T) {
	typed := &Job{}
	untyped := map[string]any{}
	both := []any{typed, untyped}
	other := owner()
	other.UID = "u2"
	for _, o := range []*Job{owner(), other} {
		if err := hierarchy.AppendOwnerReference(both, o, hierarchy.NotController(), hierarchy.NotBlocking()); err != nil {
			t.Fatal(err)
		}
	}
	if err := hierarchy.RemoveOwnerReference(both, owner()); err != nil {
		t.Fatal(err)
	}
	want := parsed(t, `{"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Job","name":"parent","uid":"u2","controller":false,"blockOwnerDeletion":false}]}`)
	for _, child := range both {
		if diff := cmp.Diff(want, metadata(t, child)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

func TestFlagsOfReferencesAreFalseOrLeftOut(t *testing.T) {
	for flags, opts := range map[string][]hierarchy.Option{
		`,"controller":true,"blockOwnerDeletion":true`:   nil,
		`,"controller":false,"blockOwnerDeletion":false`: {hierarchy.NotController(), hierarchy.NotBlocking()},
		`,"blockOwnerDeletion":true`:                     {hierarchy.OmitController()},
		`,"controller":true`:                             {hierarchy.OmitBlocking()},
		``:                                               {hierarchy.OmitController(), hierarchy.OmitBlocking()},
	} {
		want := parsed(t, `{"ownerReferences":[{"apiVersion":"example.com/v1","kind":"Job","name":"parent","uid":"u1"`+flags+`}]}`)
		for _, child := range []any{&Job{}, map[string]any{}} {
			if err := hierarchy.AppendOwnerReference(child, owner(), opts...); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, metadata(t, child)); diff != "" {
				t.Errorf("%T: -want +got\n%s", child, diff)
			}
		}
	}
}

func TestErrorsExplainMistakes(t *testing.T) {
	nameless := owner()
	nameless.Name = ""
	for name, test := range map[string]struct {
		err  error
		says string
	}{
		"no owner":          {hierarchy.Adopt(&Job{}, nil), "the owner is nil"},
		"nil owner":         {hierarchy.Adopt(&Job{}, (*Job)(nil)), "nil *hierarchy_test.Job"},
		"owner of no type":  {hierarchy.Adopt(&Job{}, "me"), "string is not an object"},
		"nameless owner":    {hierarchy.Adopt(&Job{}, nameless), "no name"},
		"nil child":         {hierarchy.Adopt((*Job)(nil), owner()), "nil *hierarchy_test.Job"},
		"nil map":           {hierarchy.Adopt(map[string]any(nil), owner()), "nil map"},
		"child of no type":  {hierarchy.Adopt([]any{&Job{}, 42}, owner()), "int is not an object"},
		"struct as a value": {hierarchy.Adopt(Job{}, owner()), "must be a pointer"},
		"odd labels":        {hierarchy.Adopt(map[string]any{"metadata": map[string]any{"labels": "a=b"}}, owner()), "labels of an object is string"},
		"blocked path":      {hierarchy.Label(&Job{}, nil, hierarchy.Nested("spec.size.x")), "spec.size is int64, not an object"},
		"malformed path":    {hierarchy.Label(&Job{}, nil, hierarchy.Nested("a..b")), "empty key"},
		"no name":           {hierarchy.HarmonizeNaming(&Job{}, ""), "the name is empty"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.says) {
			t.Errorf("%s: got %v, want something with %q", name, test.err, test.says)
		}
	}
	if err := hierarchy.Adopt(nil, owner()); err != nil {
		t.Errorf("no children at all: %v", err)
	}
}
