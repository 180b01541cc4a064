package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func foreignMap(name, value string) *corev1.ConfigMap {
	m := childMap(name, value)
	m.TypeMeta, m.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, "default"
	return m
}

// referring returns an operator whose objects refer to the ConfigMaps in their items, and to
// the namespace with the name of their field.
func referring(diary *calls) *gopf.Operator {
	op := owning()
	gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
		diary.add("%s", r.Object.Name)
		return nil
	}, gopf.Watches[*corev1.ConfigMap](func(x *Example) (all []types.NamespacedName) {
		for _, item := range x.Spec.Items {
			all = append(all, types.NamespacedName{Name: item})
		}
		return all
	}), gopf.Watches[*corev1.Namespace](func(x *Example) []types.NamespacedName {
		return []types.NamespacedName{{Name: x.Spec.Field}}
	}))
	return op
}

func TestChangesOfWatchedObjectsCallTheHandlersThatReferToThem(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		c.Create(t, foreignMap("shared", "a"))
		c.Create(t, withItems("x", "far", "shared", "missing"))
		c.Create(t, withItems("y", "none", "shared"))
		c.Create(t, withItems("z", "none", "other"))
		gopftest.Start(t, referring(&diary), c, gopf.Log(quiet()))
		settle()
		called := func() string {
			settle()
			all := diary.all()
			diary.mu.Lock()
			diary.lines = nil
			diary.mu.Unlock()
			slices.Sort(all)
			return strings.Join(all, " ")
		}
		check := func(what, want string) {
			t.Helper()
			if got := called(); got != want {
				t.Errorf("%s called the handlers of %q, want %q", what, got, want)
			}
		}
		check("the start", "x y z")
		c.Patch(t, configMaps, "default", "shared", map[string]any{"data": map[string]any{"key": "b"}})
		check("a change of a shared object", "x y")
		c.Create(t, foreignMap("missing", "a"))
		check("a creation", "x")
		c.Create(t, foreignMap("unrelated", "a"))
		check("an object that no other refers to", "")
		c.CreateNamespace(t, "far")
		check("a cluster-scoped object", "x")
		c.Delete(t, configMaps, "default", "shared")
		check("a deletion", "x y")
		c.Patch(t, resource, "default", "y", map[string]any{"spec": map[string]any{"items": []any{"unrelated"}}})
		check("a change of the references", "y")
		c.Create(t, foreignMap("shared", "c"))
		check("an object that y does not refer to any longer", "x")
		c.Patch(t, configMaps, "default", "unrelated", map[string]any{"data": map[string]any{"key": "b"}})
		check("an object that y refers to now", "y")

		down := []*gopftest.Fault{
			c.Fault(gopftest.Requests("watch", "configmaps"), gopftest.Fail(503)), c.Fault(gopftest.Requests("list", "configmaps"), gopftest.Fail(503)),
		}
		c.CutStreams()
		c.Delete(t, configMaps, "default", "shared")
		c.Expire()
		time.Sleep(30 * time.Second)
		for _, f := range down {
			f.Stop()
		}
		time.Sleep(10 * time.Second)
		check("a deletion during a disconnection", "x")
		time.Sleep(time.Hour)
		check("an idle hour", "")
	})
}

func TestRollingUpdatesChangeAFewChildrenAtATime(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			for i := range 4 {
				child := deployment(fmt.Sprint("app-", i))
				child.Spec.Template.Spec.Containers[0].Image = r.Object.Spec.Field
				gopf.Want(r, child, gopf.RollingUpdate("apps", 2))
			}
			return nil
		}, gopf.Owns[*appsv1.Deployment]())
		gopftest.Start(t, op, c, gopf.Log(testLog(t)))
		c.Create(t, example("x", "a"))
		settle()
		images := func() string {
			settle()
			var all []string
			for i := range 4 {
				list, _, _ := unstructured.NestedSlice(c.Get(t, deployments, "default", fmt.Sprint("app-", i)).Object, "spec", "template", "spec", "containers")
				all = append(all, fmt.Sprint(list[0].(map[string]any)["image"]))
			}
			return strings.Join(all, " ")
		}
		check := func(when, want string) {
			t.Helper()
			if got := images(); got != want {
				t.Errorf("%s: the images are %s, want %s", when, got, want)
			}
		}
		check("after the creation", "a a a a") // creations do not wait
		for i := range 4 {
			makeReady(t, c, fmt.Sprint("app-", i))
		}
		settle()
		update := func(to string) {
			c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": to}})
		}
		update("b")
		check("at the beginning", "b b a a")
		if got := fmt.Sprint(readyCondition(c.Get(t, resource, "default", "x"))["message"]); !strings.Contains(got, "app-0") {
			t.Errorf("the condition has the message %q", got)
		}
		makeReady(t, c, "app-1")
		check("after one is ready", "b b b a")
		update("c") // app-0 and app-2 are not ready: they can be corrected, but no other may become unready
		check("after a correction", "c b c a")
		makeReady(t, c, "app-0")
		check("after the first one is ready again", "c c c a")
		makeReady(t, c, "app-1")
		makeReady(t, c, "app-2")
		check("near the end", "c c c c")
	})
}

// The number and the size of the children may come from a tenant.
func TestRollingUpdatesTakeTimeInProportionToTheirChildren(t *testing.T) {
	const children = 100
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op, judged := owning(), new(atomic.Int64)
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			for i := range children {
				gopf.Want(r, childMap(fmt.Sprint("child-", i), r.Object.Spec.Field), gopf.RollingUpdate("all", 10), gopf.ReadyWhen(func(*corev1.ConfigMap) bool {
					judged.Add(1)
					return true
				}))
			}
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, example("x", "a"))
		settle()
		judged.Store(0)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		settle()
		for i := range children {
			if v, _, _ := unstructured.NestedString(c.Get(t, configMaps, "default", fmt.Sprint("child-", i)).Object, "data", "key"); v != "b" {
				t.Fatalf("child %d has the value %q", i, v)
			}
		}
		if judged.Load() > 20*children {
			t.Errorf("%d children were judged %d times", children, judged.Load())
		}
	})
}

func TestTooManyReferencesOfOneObjectFailOnlyItsHandler(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		many := make([]any, 2000) // and one namespace
		for i := range many {
			many[i] = fmt.Sprint("map-", i)
		}
		c.Create(t, withItems("most", "none", many[1:]...))
		c.Create(t, withItems("too-many", "none", many...))
		gopftest.Start(t, referring(&diary), c, gopf.Log(quiet()))
		settle()
		if got := strings.Join(diary.all(), " "); got != "most" {
			t.Errorf("the handler was called for %q, want only the object with 2,000 references", got)
		}
	})
}
