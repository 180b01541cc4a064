package harness

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"gopf.dev/gopf/gopftest"
)

// Manifest sends the objects of a manifest to the API server, as dry runs with strict
// validation. Clusters in memory do not know enough kinds for that: there, the objects
// are only decoded.
func Manifest(name, text string) Case {
	return Case{name, func(t *testing.T, c *gopftest.Cluster, namespace string) {
		for document := range strings.SplitSeq(text, "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				t.Fatal(err)
			}
			if c.Real() {
				dryRun(t, c, namespace, object)
			}
		}
	}}
}

func dryRun(t *testing.T, c *gopftest.Cluster, namespace string, object *unstructured.Unstructured) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(c.RESTConfig()))
	if err != nil {
		t.Fatal(err)
	}
	kind := object.GroupVersionKind()
	mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.Errorf("%s: %v", kind, err)
		return
	}
	var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		object.SetNamespace(namespace)
		resource = client.Resource(mapping.Resource).Namespace(namespace)
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	force := true
	_, err = resource.Patch(context.Background(), object.GetName(), types.ApplyPatchType, raw, metav1.PatchOptions{
		FieldManager: "docs", Force: &force, DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	if err != nil {
		t.Errorf("the API server refuses %s %s: %v", kind.Kind, object.GetName(), err)
	}
}
