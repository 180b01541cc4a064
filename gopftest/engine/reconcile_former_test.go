package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/gopftest"
)

// managers returns the field managers of an object.
func managers(o *unstructured.Unstructured) (all []string) {
	for _, e := range o.GetManagedFields() {
		all = append(all, e.Manager+" "+string(e.Operation))
	}
	slices.Sort(all)
	return all
}

func dataOf(o *unstructured.Unstructured) map[string]string {
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	return data
}

func TestFieldsOfAFormerVersionOfTheOperatorAreTakenOver(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		former := owning() // without Reconcile, and under the name of its executable
		gopf.For[*Example](former, resource).OnCreate("create", func(ctx context.Context, ch *gopf.Change[*Example]) error {
			child := childMap("one", "a")
			child.Namespace = "default"
			child.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
			child.Data["dropped"] = "b"
			return ch.API.Apply(ctx, child, client.OwnedBy(ch.Object), client.FieldManager("manager"))
		})
		stop := gopftest.Start(t, former, c, gopf.Log(quiet()))
		c.Create(t, withItems("x", "a", "one"))
		settle()
		stop()
		uid := c.Get(t, configMaps, "default", "one").GetUID()
		c.Patch(t, configMaps, "default", "one", map[string]any{"data": map[string]any{"foreign": "c"}})

		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(testLog(t)))
		settle()
		child := c.Get(t, configMaps, "default", "one")
		if got := dataOf(child); len(got) != 2 || got["key"] != "a" || got["foreign"] != "c" {
			t.Errorf("the child has the data %v: the field that is no longer declared must be gone, and that of another client must stay", got)
		}
		if got := managers(child); slices.Contains(got, "manager Apply") || !slices.Contains(got, "examples.kopf.dev Apply") {
			t.Errorf("the child has the managers %q", got)
		}
		if child.GetUID() != uid {
			t.Error("the child was created again")
		}
		seen := 0
		changes(c, &seen)
		time.Sleep(time.Hour)
		if got := changes(c, &seen); len(got) > 0 {
			t.Errorf("after the takeover, there were the writes %q", got)
		}
	})
}

func TestAdoptedObjectsKeepTheFieldsThatAreNotDeclared(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		foreign := childMap("one", "a") // the in-memory cluster names its manager "before-first-apply"
		foreign.TypeMeta, foreign.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, "default"
		foreign.Data["kept"] = "b"
		c.Create(t, foreign)
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			child := childMap("one", "a")
			if r.Object.Spec.Field == "less" {
				child.Data = nil
			}
			gopf.Want(r, child, gopf.AdoptExisting())
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, example("x", "a"))
		settle()
		if got := dataOf(c.Get(t, configMaps, "default", "one")); len(got) != 2 {
			t.Fatalf("after the adoption, the object has the data %v", got)
		}
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "less"}})
		settle()
		if got := dataOf(c.Get(t, configMaps, "default", "one")); len(got) != 1 || got["kept"] != "b" {
			t.Errorf("the object has the data %v: only the field that was declared before must be gone", got)
		}
	})
}

func TestFightsNameTheFieldAndTheOtherClient(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var log lines
		op := owning()
		x := gopf.For[*Example](op, resource)
		x.Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		// Another part of the program writes under another name.
		x.Timer("rival", time.Second, func(ctx context.Context, tick *gopf.Tick[*Example]) error {
			child := childMap("one", fmt.Sprint(time.Now().UnixNano()))
			child.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
			return tick.API.Apply(ctx, child, client.Force(), client.FieldManager("the-rival"))
		}, gopf.Optional(), gopf.InitialDelay(5*time.Second))
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		c.Create(t, withItems("x", "a", "one"))
		time.Sleep(30 * time.Second)
		const want = "data.key of ConfigMap one is changed back and forth with the-rival"
		if got := strings.Count(log.whole(), want+"; if that client"); got != 1 {
			t.Errorf("the fight was logged %d times, want once as %q", got, want)
		}
		if got := fmt.Sprint(readyCondition(c.Get(t, resource, "default", "x"))["message"]); !strings.Contains(got, want) {
			t.Errorf("the condition has the message %q", got)
		}
		if !slices.ContainsFunc(c.Writes(), func(r gopftest.Request) bool {
			return r.Resource == "events" && strings.Contains(string(r.Body), want)
		}) {
			t.Errorf("there is no Kubernetes event about the fight")
		}
	})
}
