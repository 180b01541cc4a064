package gopftest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var sprintf = fmt.Sprintf

// KopfExample is a type defined by the test, without generated code.
type KopfExample struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Field string `json:"field"`
	} `json:"spec"`
	Status map[string]any `json:"status,omitempty"`
}

func TestClusterMethodsReadAndWriteObjects(t *testing.T) {
	c := NewCluster(t, examples, "v1/configmaps")
	kex := &KopfExample{TypeMeta: metav1.TypeMeta{APIVersion: "kopf.dev/v1", Kind: "KopfExample"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	kex.Spec.Field = "one"

	created := c.Create(t, kex)
	if created.GetNamespace() != "default" || created.GetUID() == "" || created.GetGeneration() != 1 {
		t.Errorf("created: %v", created)
	}
	got := Get[*KopfExample](t, c, "kex", "default", "a")
	if got.Spec.Field != "one" || got.UID != created.GetUID() {
		t.Errorf("got %+v", got)
	}
	got.Spec.Field = "two"
	if updated := c.Update(t, got); updated.GetGeneration() != 2 {
		t.Errorf("updated: %v", updated)
	}
	if patched := c.Patch(t, "kopfexamples", "default", "a", map[string]any{"spec": map[string]any{"field": "three"}}); patched.GetGeneration() != 3 {
		t.Errorf("patched: %v", patched)
	}
	c.PatchStatus(t, "kopfexamples", "default", "a", `{"status":{"done":true},"spec":{"field":"ignored"}}`)
	got = Get[*KopfExample](t, c, "kex", "default", "a")
	if got.Spec.Field != "three" || !cmp.Equal(got.Status, map[string]any{"done": true}) {
		t.Errorf("got %+v", got)
	}
	got.Status = map[string]any{"done": false}
	c.UpdateStatus(t, got)
	if items := c.List(t, "kopfexamples", ""); len(items) != 1 || lookup(items[0], "status.done") != "false" {
		t.Errorf("listed %v", items)
	}
	c.Delete(t, "kopfexamples", "default", "a")
	if _, ok := c.Lookup(t, "kopfexamples", "default", "a"); ok {
		t.Error("the object still exists")
	}

	// Built-in types of Kubernetes need no TypeMeta.
	c.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Data: map[string]string{"x": "y"}})
	if m := Get[*corev1.ConfigMap](t, c, "v1/configmaps", "default", "m"); m.Data["x"] != "y" {
		t.Errorf("got %+v", m)
	}
}

func TestClusterMethodsAreNotLoggedAsRequests(t *testing.T) {
	c := NewCluster(t, examples)
	c.Fault(Requests("", ""), Fail(500))
	c.Create(t, example("a"))
	c.Delete(t, examples, "default", "a")
	if got := c.Requests(); len(got) != 0 {
		t.Errorf("logged: %v", got)
	}
}
