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
