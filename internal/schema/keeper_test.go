package schema

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/kind"
)

// withStatus serves a document in which databases have the schema of the status.
func withStatus(status, hash string) map[string]string {
	return map[string]string{
		"/openapi/v3": fmt.Sprintf(`{"paths": {"apis/example.com/v1": {"serverRelativeURL": "/openapi/v3/apis/example.com/v1?hash=%s"}}}`, hash),
		"/openapi/v3/apis/example.com/v1": fmt.Sprintf(`{"components": {"schemas": {
			"com.example.v1.Database": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Database"}], "properties": {"status": %s}},
			"Status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "Closed": {"type": "object"}}}}`, status),
	}
}

func keeping(k *Keeper, t *testing.T) Keeping {
	t.Helper()
	return k.Keeping(t.Context(), []kind.Info{databases})[databases.GVR()]
}

func TestSchemasThatKeepTheState(t *testing.T) {
	exact := `{"type": "object", "properties": {"op": {"type": "object", "properties": {
		"last-handled-configuration": {"type": "string"}, "moved": {"type": "string"}, "progress": {"type": "object", "additionalProperties": %s}}}}}`
	for status, want := range map[string]Keeping{
		`{"type": "object", "x-kubernetes-preserve-unknown-fields": true}`:                                           Kept,
		`{"x-kubernetes-preserve-unknown-fields": true}`:                                                             Kept,
		`{"type": "object", "properties": {"op": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}`: Kept,
		`{"type": "object", "additionalProperties": true}`:                                                           Kept,
		`{"$ref": "#/components/schemas/Status"}`:                                                                    Kept,
		`{"allOf": [{"$ref": "#/components/schemas/Status"}], "default": {}}`:                                        Kept,
		fmt.Sprintf(exact, `{"type": "object", "x-kubernetes-preserve-unknown-fields": true}`):                       Kept,
		fmt.Sprintf(exact, `{"type": "object", "properties": {"started": {"type": "string"}}}`):                      Pruned,
		`{"type": "object"}`:                       Pruned,
		`{"$ref": "#/components/schemas/Closed"}`:  Pruned,
		`{"$ref": "#/components/schemas/Nothing"}`: Pruned,
		`{"type": "object", "properties": {"op": {"type": "object"}}, "x-kubernetes-preserve-unknown-fields": true}`:                                                  Pruned,
		`{"type": "object", "properties": {"op": {"type": "string"}}}`:                                                                                                Pruned,
		`{"type": "object", "additionalProperties": {"type": "string"}}`:                                                                                              Pruned,
		`{"type": "object", "anyOf": [{"properties": {"op": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}`:                                     Pruned,
		`{"type": "object", "properties": {"other": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}`:                                               Pruned,
		`{"type": "array", "x-kubernetes-preserve-unknown-fields": true}`:                                                                                             Pruned,
		fmt.Sprintf(`{"type": "object", "properties": {"op": {"type": "object", "properties": {"progress": %s}}}}`, `{"x-kubernetes-preserve-unknown-fields": true}`): Pruned,
	} {
		k := &Keeper{API: &api{documents: withStatus(status, "1")}, Key: "op"}
		if got := keeping(k, t); got != want {
			t.Errorf("%s: got %d, want %d", status, got, want)
		}
	}
}

func TestSchemasAreReadAgainWhenTheyHaveChanged(t *testing.T) {
	a := &api{documents: withStatus(`{"$ref": "#/components/schemas/Status"}`, "1")}
	k := &Keeper{API: a, Key: "op"}
	for range 3 {
		if keeping(k, t) != Kept {
			t.Fatal("not kept")
		}
	}
	if len(a.requests) != 4 {
		t.Errorf("requests: %q, want the document once", a.requests)
	}
	a.serve(withStatus(`{"type": "object"}`, "2"), nil)
	if keeping(k, t) != Pruned {
		t.Error("the changed schema was not read")
	}
	a.serve(nil, errors.New("out of order"))
	if keeping(k, t) != Pruned {
		t.Error("a failed request changed the result")
	}
}

func TestSchemasThatCannotBeRead(t *testing.T) {
	empty := map[string]string{"/openapi/v3": `{"paths": {}}`}
	for name, test := range map[string]struct {
		api  *api
		want Keeping
	}{
		"not published": {&api{documents: empty}, NotPublished},
		"failed":        {&api{err: errors.New("out of order")}, NotPublished},
		"not found":     {&api{}, NoSchemas},
		"forbidden":     {&api{err: apierrors.NewForbidden(schema.GroupResource{}, "/openapi/v3", errors.New("no"))}, NoSchemas},
	} {
		if got := keeping(&Keeper{API: test.api, Key: "op"}, t); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}
