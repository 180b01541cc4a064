package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// childRequests returns the requests for single ConfigMaps since the last call, as "verb
// name".
func childRequests(c *gopftest.Cluster, seen *int) (all []string) {
	requests := c.Requests()
	for _, r := range requests[*seen:] {
		if r.Resource == "configmaps" && r.Name != "" {
			all = append(all, r.Verb+" "+r.Name)
		}
	}
	*seen = len(requests)
	return all
}

func TestNewChildrenAreCreatedByOneRequestEach(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		seen := 0
		c.Create(t, withItems("x", "a", "one", "two"))
		settle()
		if got, want := childRequests(c, &seen), []string{"patch one", "patch two"}; !slices.Equal(got, want) {
			t.Errorf("the creation took %q, want %q", got, want)
		}
		c.Delete(t, configMaps, "default", "one")
		settle()
		if got, want := childRequests(c, &seen), []string{"get one", "patch one"}; !slices.Equal(got, want) {
			t.Errorf("the repair took %q, want %q", got, want)
		}
	})
}

func TestChildWithoutItsLabelIsRepairedAndNotCreatedAgain(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, withItems("x", "a", "one"))
		settle()
		before := c.Get(t, configMaps, "default", "one")
		seen := len(c.Requests())
		for range 5 { // as many repairs as are allowed in a minute
			c.Patch(t, configMaps, "default", "one", map[string]any{"metadata": map[string]any{"labels": nil}})
			settle()
			if got := c.Get(t, configMaps, "default", "one"); got.GetUID() != before.GetUID() || got.GetLabels()["gopf.dev/children"] == "" {
				t.Fatalf("the child has the uid %s and the labels %v, want %s", got.GetUID(), got.GetLabels(), before.GetUID())
			}
		}
		if got, want := childRequests(c, &seen)[:2], []string{"get one", "patch one"}; !slices.Equal(got, want) {
			t.Errorf("the first repair took %q, want %q", got, want)
		}
	})
}

func TestObjectCreatedWhileAChildIsMissingIsNotChanged(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		foreign := childMap("one", "foreign")
		foreign.TypeMeta, foreign.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, "default"
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			if _, found := c.Lookup(t, configMaps, "default", "one"); !found {
				c.Create(t, foreign) // after the operator has listed the children
			}
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, withItems("x", "a", "one", "two"))
		settle()
		got := c.Get(t, configMaps, "default", "one")
		if len(got.GetLabels())+len(got.GetOwnerReferences()) > 0 || got.Object["data"].(map[string]any)["key"] != "foreign" {
			t.Errorf("the object of another client is now %v", got.Object)
		}
		c.Get(t, configMaps, "default", "two") // other children proceed
		if condition := readyCondition(c.Get(t, resource, "default", "x")); condition["reason"] != "Conflict" {
			t.Errorf("the condition is %v", condition)
		}
		seen := len(c.Requests())
		time.Sleep(10 * time.Second)
		retries := childRequests(c, &seen)
		if len(retries) == 0 || slices.Contains(retries, "patch one") {
			t.Errorf("the retries sent %q, want reads of the object of another client", retries)
		}
	})
}
