package life_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/internal/test/e2e/kit"
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

var kinds = kit.Kinds{
	Namespaced: map[string]string{
		examples: "Example", passings: "Passing", peerings: "KopfPeering", "zalando.org/v1/kopfpeerings": "KopfPeering", leases: "Lease",
		"v1/secrets": "Secret", "v1/serviceaccounts": "ServiceAccount",
		"rbac.authorization.k8s.io/v1/roles": "Role", "rbac.authorization.k8s.io/v1/rolebindings": "RoleBinding",
	},
	Global: map[string]string{
		globes: "Globe", clusterPeerings: "ClusterKopfPeering", definitions: "CustomResourceDefinition", "v1/namespaces": "Namespace",
		"rbac.authorization.k8s.io/v1/clusterroles": "ClusterRole", "rbac.authorization.k8s.io/v1/clusterrolebindings": "ClusterRoleBinding",
	},
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
type space struct{ *kit.Space }

func newSpace(t *testing.T) *space {
	t.Helper()
	return &space{kit.NewSpace(t, cluster, "life-", kinds)}
}

// handled tells as what the object was handled last; "" if it never was.
func (s *space) handled(name string) string {
	s.T.Helper()
	obj := s.Get(examples, name)
	if obj == nil {
		return ""
	}
	var base struct{ Spec struct{ Field string } }
	_ = json.Unmarshal([]byte(obj.GetAnnotations()[lastHandled]), &base) // there may be none
	return base.Spec.Field
}

// waitHandled waits until the object was handled as it is.
func (s *space) waitHandled(name, field string) {
	s.T.Helper()
	kit.Await(s.T, name+" is handled as "+field, func() bool { return s.handled(name) == field })
}

// records are the identities in a peering object.
func (s *space) records(resource, name string) []string {
	s.T.Helper()
	obj := s.Get(resource, name)
	if obj == nil {
		return nil
	}
	status, _, _ := unstructured.NestedMap(obj.Object, "status")
	return slices.Sorted(maps.Keys(status))
}

// waitRecords waits until exactly they are in the peering object.
func (s *space) waitRecords(resource, name string, want ...string) {
	s.T.Helper()
	kit.Await(s.T, "the records are "+strings.Join(want, ", "), func() bool {
		return slices.Equal(s.records(resource, name), want)
	})
}

// holder is who has the lease.
func (s *space) holder(name string) string {
	s.T.Helper()
	lease := s.Get(leases, name)
	if lease == nil {
		return ""
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder
}

var listAll = metav1.ListOptions{}

// never makes sure that something does not come to hold for a while.
func never(t *testing.T, what string, while time.Duration, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(while); time.Now().Before(deadline); time.Sleep(30 * time.Millisecond) {
		if holds() {
			t.Fatalf("after all: %s", what)
		}
	}
}
