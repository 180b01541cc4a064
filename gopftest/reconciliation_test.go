package gopftest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestReconciliationShowsTheDeclaredChildrenAndWritesNone(t *testing.T) {
	c := gopftest.NewCluster(t, "kopf.dev/v1/kopfexamples", "v1/configmaps")
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": "x", "namespace": "default"},
	}}
	foreign := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "foreign"}}
	c.Create(t, foreign)
	call := gopftest.Reconciliation(t, c, obj)
	err := call.Run(func(_ context.Context, r *gopf.Reconciliation[gopf.Unstructured]) error {
		one := gopf.Want(r, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}})
		gopf.Want(r, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "two"}}, gopf.DependsOn(one))
		gopf.Want(r, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}})
		if one.Exists || one.Ready || one.Live() == nil {
			t.Errorf("the first child is %+v", one)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var names, plan []string
	for _, w := range call.Wanted() {
		names = append(names, w.GetName())
	}
	if want := []string{"one", "two", "foreign"}; !slices.Equal(names, want) {
		t.Errorf("the declared children are %q, want %q", names, want)
	}
	for _, p := range call.Plan() {
		plan = append(plan, p.Action+" "+p.Child)
	}
	if want := []string{"create ConfigMap one", "wait ConfigMap two", "refuse ConfigMap foreign"}; !slices.Equal(plan, want) {
		t.Errorf("the plan is %q, want %q", plan, want)
	}
	if left := c.List(t, "v1/configmaps", "default"); len(left) != 1 {
		t.Errorf("there are %d children in the cluster", len(left))
	}
}

func TestPlansShowTheChangesThatTheServerWouldMake(t *testing.T) {
	c := gopftest.NewCluster(t, "kopf.dev/v1/kopfexamples", "v1/configmaps")
	parent := c.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": "x", "namespace": "default"},
	}})
	for _, name := range []string{"same", "other"} { // as the operator has left them
		child := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"key": "a"}}
		child.Namespace, child.Name, child.Labels = "default", name, map[string]string{"gopf.dev/children": "gopftest"}
		child.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "kopf.dev/v1", Kind: "KopfExample", Name: "x", UID: parent.GetUID(), Controller: new(true), BlockOwnerDeletion: new(true),
		}}
		c.Create(t, child)
	}
	call := gopftest.Reconciliation(t, c, parent)
	err := call.Run(func(_ context.Context, r *gopf.Reconciliation[gopf.Unstructured]) error {
		for name, value := range map[string]string{"same": "a", "other": "b", "wrong name": "a"} {
			gopf.Want(r, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before := len(c.Writes())
	got := map[string]string{}
	for _, p := range call.Plan() {
		got[p.Child] = fmt.Sprint(p.Action, " ", p.Diff, " ", p.Refused != nil)
	}
	for child, want := range map[string]string{
		"ConfigMap same": "keep  false", "ConfigMap other": `change change data.key: "a" -> "b" false`, "ConfigMap wrong name": "create  true",
	} {
		if got[child] != want {
			t.Errorf("the plan for %s is %q, want %q", child, got[child], want)
		}
	}
	for _, r := range c.Writes()[before:] {
		if !strings.Contains(r.Path, "dryRun=All") {
			t.Errorf("the plan caused the write %s %s", r.Method, r.Path)
		}
	}
}

func TestInvalidDeclarationsOfChildrenAreErrors(t *testing.T) {
	c := gopftest.NewCluster(t, "kopf.dev/v1/kopfexamples", "v1/configmaps")
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": "x", "namespace": "default"},
	}}
	child := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, GenerateName: "x-"}}
	}
	for name, declare := range map[string]func(*gopf.Reconciliation[gopf.Unstructured]){
		"without a name": func(r *gopf.Reconciliation[gopf.Unstructured]) { gopf.Want(r, child("")) },
		"twice":          func(r *gopf.Reconciliation[gopf.Unstructured]) { gopf.Want(r, child("a")); gopf.Want(r, child("a")) },
		"no object":      func(r *gopf.Reconciliation[gopf.Unstructured]) { gopf.Want(r, 7) },
		"a rolling update without changes": func(r *gopf.Reconciliation[gopf.Unstructured]) {
			gopf.Want(r, child("a"), gopf.RollingUpdate("all", 0))
		},
		"another type in ReadyWhen": func(r *gopf.Reconciliation[gopf.Unstructured]) {
			gopf.Want(r, child("a"), gopf.ReadyWhen(func(*corev1.Pod) bool { return true }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			call := gopftest.Reconciliation(t, c, obj)
			err := call.Run(func(_ context.Context, r *gopf.Reconciliation[gopf.Unstructured]) error { declare(r); return nil })
			if err == nil {
				t.Error("there is no error")
			}
		})
	}
}

// The number of children, and their names, may come from the object.
func TestTheErrorOfManyEqualNamesIsShort(t *testing.T) {
	c := gopftest.NewCluster(t, "kopf.dev/v1/kopfexamples", "v1/configmaps")
	call := gopftest.Reconciliation(t, c, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": "x", "namespace": "default"},
	}})
	err := call.Run(func(_ context.Context, r *gopf.Reconciliation[gopf.Unstructured]) error {
		for range 500 {
			gopf.Want(r, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "same"}})
		}
		return nil
	})
	if err == nil || strings.Count(err.Error(), "ConfigMap same is declared twice") != 10 || !strings.Contains(err.Error(), "there are 489 more mistakes") {
		t.Errorf("got %v", err)
	}
}
