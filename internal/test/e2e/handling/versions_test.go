package handling_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// The API server drops what the schema of the written version does not have, also from
// the status, even if the client may not write the status. The creation handler would be
// called again, and the client could forge the state in annotations.
func TestStateLeavesTheStatusIfAnotherVersionDropsIt(t *testing.T) {
	t.Parallel()
	const one, two, definitions = "handling.gopf.dev/v1/duals", "handling.gopf.dev/v2/duals", "apiextensions.k8s.io/v1/customresourcedefinitions"
	s := &space{kit.NewSpace(t, cluster, "handling-", kit.Kinds{
		Namespaced: map[string]string{one: "Dual", two: "Dual"},
		Global:     map[string]string{definitions: "CustomResourceDefinition"},
	})}
	version := func(name string, status fields) fields {
		status["type"] = "object"
		spec := fields{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		return fields{"name": name, "served": true, "storage": name == "v1", "subresources": fields{"status": fields{}},
			"schema": fields{"openAPIV3Schema": fields{"type": "object", "properties": fields{"spec": spec, "status": status}}}}
	}
	keeps := version("v1", fields{"x-kubernetes-preserve-unknown-fields": true})
	s.Create(definitions, "duals.handling.gopf.dev", fields{"spec": fields{"group": "handling.gopf.dev", "scope": "Namespaced",
		"names": fields{"kind": "Dual", "plural": "duals", "singular": "dual"}, "versions": []any{keeps}}})
	t.Cleanup(func() { s.Remove(definitions, "duals.handling.gopf.dev") })

	d, op := &diary{}, newOperator()
	op.Settings.Persistence = gopf.StateInStatus("things")
	x := gopf.For[*Example](op, one)
	x.OnCreate("create_fn", d.handler("create"))
	x.OnUpdate("update_fn", d.handler("update"))
	o := s.start(op, nil).following("duals")
	s.Create(one, "x", spec("a"))
	s.waitFor(one, "x", func(obj *unstructured.Unstructured) error {
		if got := statusText(obj, "things", "last-handled-configuration"); got == "" {
			return fmt.Errorf("no base is in the status of %v", obj.Object)
		}
		return nil
	})
	s.Patch(definitions, "duals.handling.gopf.dev", fields{"spec": fields{"versions": []any{keeps, version("v2", fields{})}}})
	o.Log.WaitFor(t, "The state of duals.v1.handling.gopf.dev cannot be in status.things, because the schema of its other version v2 does not keep it")
	s.Patch(one, "x", spec("b"))
	s.waitHandled(one, "x", "b")
	change, _ := json.Marshal(spec("c"))
	kit.Eventually(t, func() error { // the new version may not be served yet
		_, err := s.Of(two).Patch(context.Background(), "x", types.MergePatchType, change, metav1.PatchOptions{})
		return err
	})
	s.waitHandled(one, "x", "c")
	d.Check(t, "create create a", "update update b", "update update c")
}
