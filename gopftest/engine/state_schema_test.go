package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// thingsCRD returns a definition with a schema of the status.
func thingsCRD(t *testing.T, status, subresources string) *unstructured.Unstructured {
	t.Helper()
	return decoded(t, fmt.Sprintf(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"}, "spec": {
		"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
		"versions": [{"name": "v1", "served": true, "storage": true, "subresources": %s, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
			"spec": {"type": "object", "properties": {"field": {"type": "string"}}}, "status": %s}}}}]}}`, subresources, status))
}

func thing(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"field": "a"},
	}}
}

const (
	thingsResource = "example.com/v1/things"
	keepsAll       = `{"type": "object", "x-kubernetes-preserve-unknown-fields": true}`
	keepsKey       = `{"type": "object", "properties": {"create": {"type": "string"}, "things": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}`
	keepsNothing   = `{"type": "object", "properties": {"create": {"type": "string"}}}`
	withStatus     = `{"status": {}}`
)

func thingsOperator(diary *calls) *gopf.Operator {
	op := gopf.New(gopf.Identity("things.example.com", gopf.StateInStatus("")))
	x := gopf.For[*Example](op, thingsResource)
	x.OnCreate("create", diary.handler("create"))
	x.OnUpdate("update", diary.handler("update"))
	return op
}

func TestStateIsInTheStatusOnlyIfTheSchemaKeepsIt(t *testing.T) {
	add := []string{"status.things", "things: {type: object, x-kubernetes-preserve-unknown-fields: true}"}
	for name, test := range map[string]struct {
		status, subresources string
		without              bool // the API server publishes no schemas
		message              []string
	}{
		"all of the status":  {status: keepsAll, subresources: withStatus},
		"the key":            {status: keepsKey, subresources: withStatus},
		"another key":        {status: keepsNothing, subresources: withStatus, message: add},
		"a plain value":      {status: `{"type": "object", "properties": {"things": {"type": "string"}}}`, subresources: withStatus, message: add},
		"no subresource":     {status: keepsAll, subresources: `{}`, message: []string{"status.things", "no status subresource", "subresources: {status: {}}"}},
		"no schema to read":  {status: keepsAll, subresources: withStatus, without: true, message: add},
		"records, but no id": {status: `{"type": "object", "properties": {"things": {"type": "object", "properties": {"progress": {"type": "object"}, "last-handled-configuration": {"type": "string"}, "moved": {"type": "string"}}}}}`, subresources: withStatus, message: add},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				c.Create(t, thingsCRD(t, test.status, test.subresources))
				if test.without {
					c.Without(gopftest.OpenAPI)
				}
				var diary calls
				var log lines
				runs(t, c, thingsOperator(&diary), func() { c.Create(t, thing("x")) }, gopf.Log(log.logger()))
				x := c.Get(t, thingsResource, "default", "x")
				inStatus, inAnnotations := baseIn(x, "things") != "", x.GetAnnotations()["things.example.com/last-handled-configuration"] != ""
				if inStatus != (test.message == nil) || inAnnotations == inStatus {
					t.Errorf("got %v", x.Object)
				}
				if test.message != nil && (!log.has(test.message...) || log.count("cannot be in status.things") != 1) {
					t.Errorf("%d log lines", log.count("cannot be in status.things"))
				}
				runs(t, c, thingsOperator(&diary), nil)
				if want := []string{"create create a"}; !slices.Equal(diary.all(), want) {
					t.Errorf("calls %q, want %q", diary.all(), want)
				}
			})
		})
	}
}

func TestStateMovesWhenTheDefinitionChanges(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		definition := thingsCRD(t, keepsNothing, withStatus)
		c.Create(t, definition)
		c.Create(t, thing("x"))
		var diary calls
		var log lines
		gopftest.Start(t, thingsOperator(&diary), c, gopf.Log(log.logger()))
		time.Sleep(time.Minute)
		change := func(status string) {
			versions := thingsCRD(t, status, withStatus).Object["spec"].(map[string]any)["versions"]
			c.Patch(t, definitions, "", "things.example.com", map[string]any{"spec": map[string]any{"versions": versions}})
			time.Sleep(time.Minute)
		}
		set := func(value string) *unstructured.Unstructured {
			c.Patch(t, thingsResource, "default", "x", map[string]any{"spec": map[string]any{"field": value}})
			time.Sleep(time.Minute)
			synctest.Wait()
			return c.Get(t, thingsResource, "default", "x")
		}
		change(keepsKey)
		if x := set("b"); !strings.Contains(baseIn(x, "things"), `"b"`) {
			t.Errorf("with the key in the schema: %v", x.Object)
		}
		change(keepsAll)
		set("c")
		if want := []string{"create create a", "update update b", "update update c"}; !slices.Equal(diary.all(), want) {
			t.Errorf("calls %q, want %q", diary.all(), want)
		}
		if n := log.count("cannot be in status.things"); n != 1 {
			t.Errorf("%d log lines, want one", n)
		}
	})
}

func TestStateOfBuiltInKindsStaysInAnnotations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, "v1/pods")
		var log lines
		op := gopf.New(gopf.Identity("things.example.com", gopf.StateInStatus("")))
		gopf.For[*corev1.Pod](op, "v1/pods").OnCreate("create", func(_ context.Context, _ *gopf.Change[*corev1.Pod]) error { return nil })
		runs(t, c, op, func() {
			c.Create(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}})
		}, gopf.Log(log.logger()))
		if x := c.Get(t, "v1/pods", "default", "x"); x.GetAnnotations()["things.example.com/last-handled-configuration"] == "" || log.has("cannot be in") {
			t.Errorf("got %v", x.Object)
		}
	})
}
