package engine_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// numbers is a ConfigMap for a handler that expects numbers in it.
type numbers struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Data map[string]int `json:"data,omitempty"`
}

func (n *numbers) DeepCopyObject() runtime.Object { c := *n; return &c }

func TestAChildThatDoesNotFitItsTypeIsReported(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		var message string
		var data map[string]int
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			wanted := &numbers{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
			wanted.Name = "one"
			one := gopf.Want(r, wanted)
			data = one.Live().Data
			message = one.Message
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		log := &lines{}
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		c.Create(t, example("x", "a"))
		settle()
		if message != "" && !strings.Contains(message, "does not exist") {
			t.Fatalf("a new child has the message %q", message)
		}
		c.Patch(t, configMaps, "default", "one", map[string]any{"data": map[string]any{"key": "not a number"}})
		settle()
		if !strings.Contains(message, "does not fit its type") || len(data) > 0 {
			t.Errorf("the message is %q, the data %v", message, data)
		}
		if !log.has("does not fit its type") {
			t.Error("no log line reports the child")
		}
		c.Patch(t, configMaps, "default", "one", map[string]any{"data": nil})
		settle()
		if message != "" {
			t.Errorf("the message of the corrected child is %q", message)
		}
	})
}

// The operator does not keep the content of such a child.
func TestTheContentOfALargeChildIsRead(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		length, ready := 0, false
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			text := map[string]string{"text": strings.Repeat("x", 200<<10)}
			one := gopf.Want(r, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Data: text},
				gopf.ReadyWhen(func(m *corev1.ConfigMap) bool { return len(m.Data["text"]) == 200<<10 }))
			length, ready = len(one.Live().Data["text"]), one.Ready
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c)
		c.Create(t, example("x", "a"))
		settle()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		settle()
		if length != 200<<10 || !ready {
			t.Errorf("the content of the child has %d bytes, and the child is ready: %v", length, ready)
		}
	})
}
