package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"gopf.dev/gopf/internal/policy"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// API servers evaluate expressions about all keys of a map in quadratic time, until the request
// times out. A tenant must not be able to cause that, and controllers must be able to release
// objects with many annotations.
func TestThePolicyIsCheapForObjectsWithManyAnnotations(t *testing.T) {
	t.Parallel()
	const prefix = "costs.example.com"
	space := namespace(t)
	enforce(t, policy.Reservation{
		Name: "costs-state", Account: "system:serviceaccount:" + space + ":operator", Prefixes: []string{prefix},
		Keys: []string{"costs"}, Resources: []policy.Resource{{Plural: "configmaps"}},
	})
	everything := []any{"get", "list", "create", "update", "patch", "delete"}
	grant(t, space, "tenant", everything)
	grant(t, space, "operator", everything)
	ctx := context.WithoutCancel(t.Context())
	of := func(account string) dynamic.ResourceInterface {
		return dynamic.NewForConfigOrDie(inAccount(space, account)).Resource(kit.GVR("v1/configmaps")).Namespace(space)
	}
	object := func(name string, annotations map[string]string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		o.SetName(name)
		o.SetFinalizers([]string{"example.org/guard"})
		o.SetAnnotations(annotations)
		return o
	}
	kit.Eventually(t, func() error { // the roles take a moment
		for _, account := range []string{"tenant", "operator"} {
			if _, err := of(account).Create(ctx, object("of-"+account, nil), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
		return nil
	})
	kit.Eventually(t, func() error { // the policy too
		o := object(fmt.Sprint("probe-", time.Now().UnixNano()), map[string]string{prefix + "/probe": "x"})
		if _, err := of("tenant").Create(ctx, o, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a tenant got %w", err)
		}
		return nil
	})
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	const n = len(letters)
	many := func(count int) map[string]string {
		annotations := make(map[string]string, count)
		for i := range count {
			annotations[string([]byte{letters[i/n/n%n], letters[i/n%n], letters[i%n]})] = ""
		}
		return annotations
	}
	if _, err := of("tenant").Create(ctx, object("many", many(1_000)), metav1.CreateOptions{}); err != nil {
		t.Errorf("1,000 annotations: %v", err)
	}
	_, err := of("tenant").Create(ctx, object("too-many", many(1_001)), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "more than 1000 annotations") {
		t.Errorf("1,001 annotations: %v", err)
	}

	// The policy came later than this object.
	if _, err := of("operator").Create(ctx, object("old", many(20_000)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := func(metadata map[string]any) error {
		raw, _ := json.Marshal(map[string]any{"metadata": metadata})
		_, err := of("tenant").Patch(ctx, "old", types.MergePatchType, raw, metav1.PatchOptions{})
		return err
	}
	if err := patch(map[string]any{"annotations": map[string]any{"aaa": "changed"}}); !apierrors.IsForbidden(err) {
		t.Errorf("a changed annotation among 20,000: %v", err)
	}
	if err := patch(map[string]any{"labels": map[string]any{"a": "b"}, "finalizers": []any{}}); err != nil {
		t.Errorf("a finalizer removed from an object with 20,000 annotations: %v", err)
	}
}
