package gopftest

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// document returns a JSON document of the cluster. nil means that there is none.
func document(t *testing.T, c *Cluster, path string) map[string]any {
	t.Helper()
	client := &http.Client{Transport: c.Transport()}
	r, err := client.Get("https://cluster.test" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode == http.StatusNotFound {
		return nil
	}
	var decoded map[string]any
	if err := json.Unmarshal(body, &decoded); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v: %v %s", path, r.StatusCode, err, body)
	}
	return decoded
}

// valueAt returns the value at the keys of decoded JSON, through references.
func valueAt(d map[string]any, from any, keys ...string) any {
	for _, key := range keys {
		m, _ := from.(map[string]any)
		if ref, ok := m["$ref"].(string); ok {
			m, _ = d["components"].(map[string]any)["schemas"].(map[string]any)[ref[len("#/components/schemas/"):]].(map[string]any)
		}
		from = m[key]
	}
	return from
}

func TestSchemasArePublished(t *testing.T) {
	c := NewCluster(t, "v1/pods", "apps/v1/deployments", "example.com/v1/things")
	c.Load(t, "testdata/crd.yaml")
	for _, v := range []struct {
		path, name string
		keys       []string
		want       any
	}{
		{"/openapi/v3/api/v1", "io.k8s.api.core.v1.Pod", []string{"properties", "spec", "properties", "nodeName", "type"}, "string"},
		{"/openapi/v3/api/v1", "io.k8s.api.core.v1.Pod", []string{"properties", "spec", "properties", "nodeNmae"}, nil},
		{"/openapi/v3/api/v1", "io.k8s.api.core.v1.Pod", []string{"properties", "spec", "properties", "containers", "items", "properties", "image", "type"}, "string"},
		{"/openapi/v3/api/v1", "io.k8s.api.core.v1.Pod", []string{"properties", "metadata", "properties", "labels", "additionalProperties", "type"}, "string"},
		{"/openapi/v3/apis/apps/v1", "io.k8s.api.apps.v1.Deployment", []string{"properties", "spec", "properties", "replicas", "type"}, "integer"},
		{"/openapi/v3/apis/apps/v1", "io.k8s.api.apps.v1.Deployment", []string{"properties", "kind", "type"}, "string"},
		{"/openapi/v3/apis/example.com/v1", "com.example.v1.Thing", []string{"x-kubernetes-preserve-unknown-fields"}, true},
		{"/openapi/v3/apis/example.com/v1", "com.example.v1.Thing", []string{"properties", "metadata", "properties", "name", "type"}, "string"},
		{"/openapi/v3/apis/testing.gopf.dev/v1", "dev.gopf.testing.v1.Jar", []string{"properties", "spec", "properties", "size", "type"}, "integer"},
		{"/openapi/v3/apis/apiextensions.k8s.io/v1", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", []string{"properties", "spec", "properties", "group", "type"}, "string"},
	} {
		d := document(t, c, v.path)
		of := valueAt(d, d, "components", "schemas", v.name)
		if of == nil {
			t.Errorf("%s has no schema of %s", v.path, v.name)
		}
		if got := valueAt(d, of, v.keys...); got != v.want {
			t.Errorf("%s of %s: got %v, want %v", v.keys, v.name, got, v.want)
		}
	}
	index := document(t, c, "/openapi/v3")
	if got := valueAt(index, index, "paths", "apis/apps/v1", "serverRelativeURL"); got != "/openapi/v3/apis/apps/v1" {
		t.Errorf("the list of documents is %v", index)
	}
	for _, missing := range []string{"/openapi/v3/apis/apps/v2", "/openapi/v3/api", "/openapi/v2"} {
		if got := document(t, c, missing); got != nil {
			t.Errorf("%s: got %v", missing, got)
		}
	}
	c.Without(OpenAPI)
	if got := document(t, c, "/openapi/v3"); got != nil {
		t.Errorf("without the feature: got %v", got)
	}
}
