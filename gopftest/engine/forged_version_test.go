package engine_test

import (
	"context"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// Another served version of the resource has no status subresource. So the operator keeps its state
// in annotations, and a tenant without a permission for the status forges a note with a change there.
func TestChangesInANoteInAnUnguardedStatusAreNotSent(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		schema := `"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"field": {"type": "string"}}}, "status": ` + keepsAll + `}}}`
		c.Create(t, decoded(t, `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"}, "spec": {
			"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
			"versions": [{"name": "v1", "served": true, "storage": true, "subresources": `+withStatus+`, `+schema+`},
				{"name": "v1alpha1", "served": true, "storage": false, `+schema+`}]}}`))
		op := gopf.New(gopf.Identity("things.example.com", gopf.StateInStatus("")))
		x := gopf.For[*Example](op, thingsResource)
		x.On(gopf.Create|gopf.Update, "create", func(context.Context, *gopf.Change[*Example]) error { return nil })
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, thing("x"))
		time.Sleep(time.Minute)
		c.Patch(t, "example.com/v1alpha1/things", "default", "x", map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"things.example.com/last-handled-configuration": nil}},
			"status": map[string]any{"things": map[string]any{
				"last-handled-configuration": `{"spec":{"field":"foreign"}}`,
				"progress": map[string]any{"gopf.handling": map[string]any{
					"purpose": "update", "started": "2000-01-01T00:00:00",
					"message": `{"v":2,"todo":[{"handler":"create","patch":{"metadata":{"labels":{"approved":"yes"}}}}]}`,
				}},
			}},
		})
		time.Sleep(2 * time.Hour)
		if label := c.Get(t, thingsResource, "default", "x").GetLabels()["approved"]; label != "" {
			t.Errorf("the operator has sent the change of the tenant: the label is %q", label)
		}
	})
}
