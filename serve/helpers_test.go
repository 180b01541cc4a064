package serve_test

import (
	"context"
	"encoding/base64"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"gopf.dev/gopf/gopftest"
)

type ctx = context.Context

// create creates a thing and returns the error of the API server.
func create(t *testing.T, c *gopftest.Cluster, o *unstructured.Unstructured) error {
	t.Helper()
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{})
	return err
}

// gopftestReady waits until the webhooks are configured.
func gopftestReady(t *testing.T, c *gopftest.Cluster) {
	t.Helper()
	for _, resource := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		c.WaitList(t, "admissionregistration.k8s.io/v1/"+resource, "", func(list []*unstructured.Unstructured) bool {
			for _, o := range list {
				if hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks"); len(hooks) > 0 {
					return true
				}
			}
			return false
		})
	}
}

func decodeBase64(text string) ([]byte, error) { return base64.StdEncoding.DecodeString(text) }
