package kit

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Fields are the fields of an object or of a part of it.
type Fields = map[string]any

// Kinds maps resources to kinds: "apps/v1/deployments", "v1/secrets". Unknown resources
// count as namespaced.
type Kinds struct {
	Namespaced, Global map[string]string
}

// Space is the namespace of one test. Its requests do not end with the test's context,
// because cleanups need them.
type Space struct {
	T      *testing.T
	Name   string
	Client dynamic.Interface
	kinds  Kinds
}

// NewSpace creates a namespace with the name prefix. It is not deleted, because the control
// plane is discarded.
func NewSpace(t *testing.T, config *rest.Config, prefix string, kinds Kinds) *Space {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &Space{T: t, Client: client, kinds: kinds}
	made, err := client.Resource(GVR("v1/namespaces")).Create(context.Background(), &unstructured.Unstructured{Object: Fields{
		"apiVersion": "v1", "kind": "Namespace", "metadata": Fields{"generateName": prefix},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Name = made.GetName()
	return s
}

// As returns the same namespace through another client, which has its own resources.
func (s *Space) As(client dynamic.Interface, kinds Kinds) *Space {
	return &Space{T: s.T, Name: s.Name, Client: client, kinds: kinds}
}

// GVR parses the name of a resource.
func GVR(resource string) schema.GroupVersionResource {
	parts := strings.Split(resource, "/")
	gvr := schema.GroupVersionResource{Version: parts[0], Resource: parts[len(parts)-1]}
	if len(parts) == 3 {
		gvr.Group, gvr.Version = parts[0], parts[1]
	}
	return gvr
}

// Of returns the client of a resource, in the namespace if the resource is namespaced.
func (s *Space) Of(resource string) dynamic.ResourceInterface {
	all := s.Client.Resource(GVR(resource))
	if _, global := s.kinds.Global[resource]; global {
		return all
	}
	return all.Namespace(s.Name)
}

// Create creates an object with the fields. An empty name is not set.
func (s *Space) Create(resource, name string, of Fields) *unstructured.Unstructured {
	s.T.Helper()
	made, err := s.TryCreate(resource, name, of)
	if err != nil {
		s.T.Fatalf("create %s %s: %v", resource, name, err)
	}
	return made
}

// TryCreate is Create with an error instead of a failure.
func (s *Space) TryCreate(resource, name string, of Fields) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	body := Fields{} // with the types of decoded JSON
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	if body == nil { // if there are no fields
		body = Fields{}
	}
	obj := &unstructured.Unstructured{Object: body}
	obj.SetAPIVersion(GVR(resource).GroupVersion().String())
	if kind, global := s.kinds.Global[resource]; global {
		obj.SetKind(kind)
	} else {
		obj.SetKind(s.kinds.Namespaced[resource])
	}
	if name != "" {
		obj.SetName(name)
	}
	return s.Of(resource).Create(context.Background(), obj, metav1.CreateOptions{})
}

// Get returns an object. nil means that the object does not exist.
func (s *Space) Get(resource, name string) *unstructured.Unstructured {
	s.T.Helper()
	obj, err := s.Of(resource).Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.T.Fatalf("get %s %s: %v", resource, name, err)
	}
	return obj
}

// Patch applies a merge patch to an object.
func (s *Space) Patch(resource, name string, change Fields, subresources ...string) {
	s.T.Helper()
	if err := s.TryPatch(resource, name, change, subresources...); err != nil {
		s.T.Fatalf("patch %s %s: %v", resource, name, err)
	}
}

// TryPatch is Patch with an error instead of a failure.
func (s *Space) TryPatch(resource, name string, change Fields, subresources ...string) error {
	raw, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = s.Of(resource).Patch(context.Background(), name, types.MergePatchType, raw, metav1.PatchOptions{}, subresources...)
	return err
}

// Delete deletes an object, which must exist.
func (s *Space) Delete(resource, name string) {
	s.T.Helper()
	if err := s.Of(resource).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		s.T.Fatalf("delete %s %s: %v", resource, name, err)
	}
}

// Remove deletes an object if it exists.
func (s *Space) Remove(resource, name string) {
	s.T.Helper()
	if err := s.Of(resource).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.T.Fatalf("delete %s %s: %v", resource, name, err)
	}
}
