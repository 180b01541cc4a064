package e2e

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/dev/manifests"
)

func TestANewObjectIsHandled(t *testing.T) {
	t.Parallel()
	manifest, err := manifests.Read("../../../examples/obj.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		fields  map[string]any
		essence string // as Kopf writes it, but for the newline at its end
	}{
		"the example": {
			manifest[0].Object,
			`{"spec":{"duration":"1m","field":"value","items":["item1","item2"]},` +
				`"metadata":{"labels":{"somelabel":"somevalue"},"annotations":{"someannotation":"somevalue"}}}`,
		},
		"without metadata": {
			map[string]any{"spec": map[string]any{"field": "value"}},
			`{"spec":{"field":"value"}}`,
		},
		"without anything": {
			map[string]any{},
			`{}`,
		},
		"only labels": {
			map[string]any{"metadata": map[string]any{"labels": map[string]any{"b": "2", "a": "1"}}},
			`{"metadata":{"labels":{"a":"1","b":"2"}}}`,
		},
		"annotations of tools": {
			map[string]any{"metadata": map[string]any{"annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "keep"}}},
			`{"metadata":{"annotations":{"note":"keep"}}}`,
		},
		"all kinds of values": {
			map[string]any{"spec": map[string]any{"empty": map[string]any{}, "float": 0.5, "int": int64(-7),
				"list": []any{}, "text": "ä \"<&>\"\n\u2028 😀", "true": true}},
			`{"spec":{"empty":{},"float":0.5,"int":-7,"list":[],"text":"\u00e4 \"<&>\"\n\u2028 \ud83d\ude00","true":true}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := examples(t, namespace(t))
			called := &calls{}
			operator := run(t, greeter(called), gopf.Namespaces(objects.namespace))
			created := objects.create("kopf-example-1", c.fields)
			handled := objects.awaitHandled("kopf-example-1")
			operator.Stop()

			if diff := cmp.Diff([]string{objects.namespace + "/kopf-example-1"}, called.all()); diff != "" {
				t.Errorf("calls: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(map[string]any{"create_fn": map[string]any{"message": "hello world"}}, handled.Object["status"]); diff != "" {
				t.Errorf("status: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(c.essence+"\n", handled.GetAnnotations()[lastHandled]); diff != "" {
				t.Errorf("the annotation: -want +got\n%s", diff)
			}
			if !json.Valid([]byte(handled.GetAnnotations()[lastHandled])) {
				t.Error("the annotation is not JSON")
			}
			if diff := cmp.Diff(without(created), without(handled)); diff != "" {
				t.Errorf("the rest of the object has changed: -before +after\n%s", diff)
			}
		})
	}
}

// without is the object but for what handling it changes.
func without(object *unstructured.Unstructured) map[string]any {
	clone := object.DeepCopy()
	annotations := clone.GetAnnotations()
	delete(annotations, lastHandled)
	delete(annotations, "kopf.zalando.org/gopf.bound")
	if len(annotations) == 0 {
		annotations = nil
	}
	clone.SetAnnotations(annotations)
	clone.SetResourceVersion("")
	clone.SetManagedFields(nil)
	delete(clone.Object, "status")
	return clone.Object
}
