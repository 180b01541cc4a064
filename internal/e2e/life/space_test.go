package life_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// The resources of the tests.
const (
	examples        = "life.gopf.dev/v1/examples"
	globes          = "life.gopf.dev/v1/globes"
	passings        = "life.gopf.dev/v1/passings" // defined by a test
	peerings        = "kopf.dev/v1/kopfpeerings"
	clusterPeerings = "kopf.dev/v1/clusterkopfpeerings"
	leases          = "coordination.k8s.io/v1/leases"
	events          = "v1/events"
	definitions     = "apiextensions.k8s.io/v1/customresourcedefinitions"

	lastHandled = "kopf.zalando.org/last-handled-configuration"
)

var kinds = map[string]string{
	examples: "Example", globes: "Globe", peerings: "KopfPeering", clusterPeerings: "ClusterKopfPeering",
	"zalando.org/v1/kopfpeerings": "KopfPeering", "v1/namespaces": "Namespace", "v1/secrets": "Secret", "v1/serviceaccounts": "ServiceAccount",
	"rbac.authorization.k8s.io/v1/rolebindings": "RoleBinding", "rbac.authorization.k8s.io/v1/clusterroles": "ClusterRole",
	"rbac.authorization.k8s.io/v1/clusterrolebindings": "ClusterRoleBinding", "rbac.authorization.k8s.io/v1/roles": "Role",
	definitions: "CustomResourceDefinition", leases: "Lease", passings: "Passing",
}

// Example is the Go type of the tests' custom resources.
type Example struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Field string   `json:"field,omitempty"`
		Items []string `json:"items,omitempty"`
	} `json:"spec"`
	Status map[string]any `json:"status,omitempty"`
}

// fields is a part of an object.
type fields = map[string]any

func spec(field string) fields { return fields{"spec": fields{"field": field}} }

// space is a namespace of a test's own.
type space struct {
	t      *testing.T
	name   string
	client dynamic.Interface
}

// newSpace makes a namespace. It is left behind, as is the control plane.
func newSpace(t *testing.T) *space {
	t.Helper()
	client, err := dynamic.NewForConfig(rest.CopyConfig(cluster))
	if err != nil {
		t.Fatal(err)
	}
	s := &space{t: t, client: client}
	s.name = s.create("v1/namespaces", "", fields{"metadata": fields{"generateName": "life-"}}).GetName()
	return s
}

// of reaches objects of a resource, in the namespace if they are in any.
func (s *space) of(resource string) dynamic.ResourceInterface {
	gvr := gvrOf(resource)
	switch gvr.Resource {
	case "namespaces", "globes", "clusterkopfpeerings", "customresourcedefinitions", "clusterroles", "clusterrolebindings":
		return s.client.Resource(gvr)
	}
	return s.client.Resource(gvr).Namespace(s.name)
}

func gvrOf(resource string) schema.GroupVersionResource {
	parts := strings.Split(resource, "/")
	gvr := schema.GroupVersionResource{Version: parts[0], Resource: parts[len(parts)-1]}
	if len(parts) == 3 {
		gvr.Group, gvr.Version = parts[0], parts[1]
	}
	return gvr
}

// create makes an object of the fields, with the name unless it is empty.
func (s *space) create(resource, name string, of fields) *unstructured.Unstructured {
	s.t.Helper()
	var body fields
	raw, err := json.Marshal(of)
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if body == nil {
		body = fields{}
	}
	obj := &unstructured.Unstructured{Object: body}
	obj.SetAPIVersion(resource[:strings.LastIndexByte(resource, '/')])
	obj.SetKind(kinds[resource])
	if name != "" {
		obj.SetName(name)
	}
	made, err := s.of(resource).Create(context.Background(), obj, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatalf("create %s %s: %v", resource, name, err)
	}
	return made
}

// get returns the object; nil if there is none.
func (s *space) get(resource, name string) *unstructured.Unstructured {
	s.t.Helper()
	obj, err := s.of(resource).Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.t.Fatalf("get %s %s: %v", resource, name, err)
	}
	return obj
}

// patch changes an object by a merge patch.
func (s *space) patch(resource, name string, change fields) {
	s.t.Helper()
	raw, err := json.Marshal(change)
	if err == nil {
		_, err = s.of(resource).Patch(context.Background(), name, types.MergePatchType, raw, metav1.PatchOptions{})
	}
	if err != nil {
		s.t.Fatalf("patch %s %s: %v", resource, name, err)
	}
}

func (s *space) delete(resource, name string) {
	s.t.Helper()
	if err := s.of(resource).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.t.Fatalf("delete %s %s: %v", resource, name, err)
	}
}

// handled tells as what the object was handled last; "" if it never was.
func (s *space) handled(name string) string {
	s.t.Helper()
	obj := s.get(examples, name)
	if obj == nil {
		return ""
	}
	var base struct{ Spec struct{ Field string } }
	_ = json.Unmarshal([]byte(obj.GetAnnotations()[lastHandled]), &base) // there may be none
	return base.Spec.Field
}

// waitHandled waits until the object was handled as it is.
func (s *space) waitHandled(name, field string) {
	s.t.Helper()
	eventually(s.t, name+" is handled as "+field, func() bool { return s.handled(name) == field })
}

// records are the identities in a peering object.
func (s *space) records(resource, name string) []string {
	s.t.Helper()
	obj := s.get(resource, name)
	if obj == nil {
		return nil
	}
	status, _, _ := unstructured.NestedMap(obj.Object, "status")
	return slices.Sorted(maps.Keys(status))
}

// waitRecords waits until exactly they are in the peering object.
func (s *space) waitRecords(resource, name string, want ...string) {
	s.t.Helper()
	eventually(s.t, "the records are "+strings.Join(want, ", "), func() bool {
		return slices.Equal(s.records(resource, name), want)
	})
}

// holder is who has the lease.
func (s *space) holder(name string) string {
	s.t.Helper()
	lease := s.get(leases, name)
	if lease == nil {
		return ""
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder
}

var listAll = metav1.ListOptions{}

// patience is how long anything may take that is waited for. Nothing should come
// near it, but machines may be busy.
const patience = 30 * time.Second

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// never makes sure that something does not come to hold for a while.
func never(t *testing.T, what string, while time.Duration, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(while); time.Now().Before(deadline); time.Sleep(30 * time.Millisecond) {
		if holds() {
			t.Fatalf("after all: %s", what)
		}
	}
}
