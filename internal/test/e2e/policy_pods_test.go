package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/policy"
	"gopf.dev/gopf/internal/test/e2e/kit"
	"gopf.dev/gopf/kind"
)

// Kubernetes has two ways to change the annotations of an object without a request for it: the
// API server copies those of a binding to its Pod, and a controller rolls Deployments back.
func TestThePolicyCannotBeEvadedByBindingsAndRollbacks(t *testing.T) {
	t.Parallel()
	const prefix = "evasion.example.com"
	space := namespace(t)
	enforce(t, policy.Reservation{
		Name: "evasion-state", Account: "system:serviceaccount:" + space + ":operator", Prefixes: []string{prefix},
		Resources: []policy.Resource{{Plural: "pods"}, {Group: "apps", Plural: "deployments"}},
	})
	everything := []any{"get", "list", "create", "update", "patch"}
	grant(t, space, "tenant", everything)
	grant(t, space, "repairer", append([]any{policy.Verb}, everything...))
	ctx := context.WithoutCancel(t.Context())
	tenant := dynamic.NewForConfigOrDie(inAccount(space, "tenant"))
	in := func(plural string) dynamic.ResourceInterface {
		return tenant.Resource(kit.GVR(plural)).Namespace(space)
	}
	container := map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none"}}}
	object := func(kind, apiVersion string, spec map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
		o.SetName("x")
		return o
	}
	pod := object("Pod", "v1", map[string]any{"automountServiceAccountToken": false, "containers": container["containers"]})
	kit.Eventually(t, func() error { // the service account of the namespace and the role take a moment
		_, err := in("v1/pods").Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	labels := map[string]any{"app": "x"}
	deployment := object("Deployment", "apps/v1", map[string]any{"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": container}})
	if _, err := in("apps/v1/deployments").Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	annotate := func(plural, key string, value any) error {
		patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
		_, err := in(plural).Patch(ctx, "x", types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	kit.Eventually(t, func() error { // the policy takes a moment to count
		if err := annotate("v1/pods", prefix+"/probe", fmt.Sprint(time.Now())); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a tenant got %w", err)
		}
		return nil
	})

	forged, _ := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": "x", "annotations": map[string]any{prefix + "/forged": "x"}},
		"target": map[string]any{"kind": "Node", "name": "n"},
	})
	bind := func(account string) error {
		client, err := kube.NewClient(inAccount(space, account), kube.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		_, err = client.Create(ctx, kube.Target{Info: kind.Info{Version: "v1", Kind: "Binding", Plural: "bindings", Namespaced: true}, Namespace: space}, forged)
		return err
	}
	if err := bind("tenant"); !apierrors.IsForbidden(err) {
		t.Errorf("a binding with a reserved annotation: a tenant got %v", err)
	}
	if o, err := in("v1/pods").Get(ctx, "x", metav1.GetOptions{}); err != nil || o.GetAnnotations()[prefix+"/forged"] != "" {
		t.Errorf("the Pod has the annotations %v, error %v", o.GetAnnotations(), err)
	}
	if err := bind("repairer"); apierrors.IsForbidden(err) {
		t.Errorf("an account with the verb %s on pods is refused: %v", policy.Verb, err)
	}

	const rollback = "deprecated.deployment.rollback.to"
	if err := annotate("apps/v1/deployments", rollback, "1"); !apierrors.IsForbidden(err) {
		t.Errorf("a rollback by annotation: a tenant got %v", err)
	}
	if err := annotate("apps/v1/deployments", rollback, nil); err != nil {
		t.Errorf("the removal of the annotation: a tenant got %v", err)
	}
	if err := annotate("v1/pods", rollback, "1"); err != nil {
		t.Errorf("the annotation on a Pod, where it has no meaning: a tenant got %v", err)
	}
}

// enforce puts the policy of a reservation into the cluster.
func enforce(t *testing.T, r policy.Reservation) {
	t.Helper()
	made, err := r.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range made {
		put(t, o)
	}
}

// put creates an object of the API group of admission, and deletes it at the end.
func put(t *testing.T, o map[string]any) {
	t.Helper()
	plural := map[string]string{"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings"}[o["kind"].(string)]
	raw, _ := json.Marshal(o)
	var fields map[string]any
	_ = json.Unmarshal(raw, &fields)
	meta, _ := fields["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	in := objects{t, "", o["kind"].(string), schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: plural}}
	in.create(name, map[string]any{"spec": fields["spec"]})
	t.Cleanup(func() { in.delete(name) })
}

// grant gives an account the verbs on Pods, bindings and Deployments.
func grant(t *testing.T, space, account string, verbs []any) {
	t.Helper()
	in := objects{t, space, "Role", schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}}
	in.create(account, map[string]any{"rules": []any{
		map[string]any{"apiGroups": []any{""}, "resources": []any{"pods", "bindings", "configmaps"}, "verbs": verbs},
		map[string]any{"apiGroups": []any{"apps"}, "resources": []any{"deployments"}, "verbs": verbs},
	}})
	in.kind, in.resource.Resource = "RoleBinding", "rolebindings"
	in.create(account, map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": space, "name": account}},
	})
}
