package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const (
	configMaps  = "v1/configmaps"
	deployments = "apps/v1/deployments"
)

// owners runs a test in virtual time with a cluster that has kinds of children.
func owners(t *testing.T, test func(t *testing.T, c *gopftest.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, gopftest.NewCluster(t, resource, configMaps, "v1/secrets", deployments, "v1/namespaces"))
	})
}

func owning() *gopf.Operator { return gopf.New(gopf.Identity("examples.kopf.dev")) }

func childMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}
}

// reconciled is the handler of most tests: each item of the object is a ConfigMap.
func reconciled(r *gopf.Reconciliation[*Example]) {
	for _, item := range r.Object.Spec.Items {
		gopf.Want(r, childMap(item, r.Object.Spec.Field))
	}
}

func withItems(name, field string, items ...any) *unstructured.Unstructured {
	o := example(name, field)
	o.Object["spec"].(map[string]any)["items"] = items
	return o
}

// changes returns the writes since the last call, as "verb resource/name".
func changes(c *gopftest.Cluster, seen *int) (all []string) {
	writes := c.Writes()
	for _, r := range writes[*seen:] {
		if r.Resource != "events" {
			all = append(all, r.Verb+" "+r.Resource+"/"+r.Name+strings.TrimSuffix("/"+r.Subresource, "/"))
		}
	}
	*seen = len(writes)
	return all
}

func TestReconcileCreatesRepairsAndPrunesChildren(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			diary.add("call")
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(testLog(t)))
		parent := c.Create(t, withItems("x", "a", "one", "two"))
		settle()
		one := c.Get(t, configMaps, "default", "one")
		owner := metav1.GetControllerOf(one)
		if owner == nil || owner.UID != parent.GetUID() || one.GetLabels()["gopf.dev/children"] != "examples.kopf.dev" {
			t.Errorf("the child has the owner %v and the labels %v", owner, one.GetLabels())
		}
		if m := one.GetManagedFields(); len(m) != 1 || m[0].Manager != "examples.kopf.dev" || m[0].Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("the child has the field managers %v", m)
		}
		if got := c.Get(t, resource, "default", "x").GetFinalizers(); len(got) > 0 {
			t.Errorf("the object has the finalizers %v, although nothing depends on the order of deletions", got)
		}
		seen := 0
		want := []string{"patch configmaps/one", "patch configmaps/two", "patch kopfexamples/x/status", "patch kopfexamples/x"}
		own := func() []string {
			return slices.DeleteFunc(changes(c, &seen), func(s string) bool { return strings.HasPrefix(s, "create kopfexamples") })
		}
		if got := own(); !slices.Equal(got, want) && !slices.Equal(got, []string{"patch configmaps/one", "patch configmaps/two", "patch kopfexamples/x"}) {
			t.Errorf("a new object caused the writes %q, want %q", got, want)
		}

		before := len(diary.all())
		c.Patch(t, configMaps, "default", "one", map[string]any{"data": map[string]any{"key": "edited"}})
		settle()
		if v, _, _ := unstructured.NestedString(c.Get(t, configMaps, "default", "one").Object, "data", "key"); v != "a" {
			t.Errorf("the edited child has the value %q", v)
		}
		c.Delete(t, configMaps, "default", "two")
		settle()
		c.Get(t, configMaps, "default", "two")
		repairs := slices.DeleteFunc(own(), func(s string) bool { return strings.HasPrefix(s, "patch kopfexamples") })
		if got := strings.Join(repairs, ", "); got != "patch configmaps/one, patch configmaps/two" && got != "patch configmaps/one, delete configmaps/two, patch configmaps/two" {
			t.Errorf("the repairs caused the writes %s", got)
		}
		if got := len(diary.all()) - before; got != 2 {
			t.Errorf("the handler was called %d times for two changes of children", got)
		}

		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"items": []any{"one"}, "field": "b"}})
		settle()
		if _, found := c.Lookup(t, configMaps, "default", "two"); found {
			t.Error("a child that is no longer declared still exists")
		}
		if v, _, _ := unstructured.NestedString(c.Get(t, configMaps, "default", "one").Object, "data", "key"); v != "b" {
			t.Errorf("the changed child has the value %q", v)
		}
		time.Sleep(time.Hour)
		own()
		time.Sleep(time.Hour)
		if got := own(); len(got) > 0 {
			t.Errorf("an idle operator caused the writes %q", got)
		}
	})
}

func TestRestartCallsReconcileHandlersOnceAndWritesNothing(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		start := func() (stop func()) {
			op := owning()
			gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
				diary.add("call")
				one := gopf.Want(r, childMap("one", "a"))
				gopf.Want(r, childMap("two", "a"), gopf.DependsOn(one))
				return nil
			}, gopf.Owns[*corev1.ConfigMap]())
			stop = gopftest.Start(t, op, c, gopf.Log(quiet()))
			settle()
			return stop
		}
		c.Create(t, example("x", "a"))
		stop := start()
		stop()
		seen := 0
		changes(c, &seen)
		before := len(diary.all())
		for range 10 {
			start()()
		}
		if got := changes(c, &seen); len(got) > 0 {
			t.Errorf("ten restarts caused the writes %q", got)
		}
		if got := len(diary.all()) - before; got != 10 {
			t.Errorf("ten restarts caused %d calls", got)
		}
	})
}

func TestRemovedDeclarationDeletesExactlyThatChildAfterARestart(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		start := func(names ...string) (stop func()) {
			op := owning()
			gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
				for _, name := range names {
					gopf.Want(r, childMap(name, "a"))
				}
				return nil
			}, gopf.Owns[*corev1.ConfigMap]())
			stop = gopftest.Start(t, op, c, gopf.Log(quiet()))
			settle()
			return stop
		}
		c.Create(t, example("x", "a"))
		start("one", "two")()
		copied := childMap("copied", "foreign") // another controller copied labels and owner references of a child
		copied.Labels, copied.OwnerReferences, copied.Namespace = c.Get(t, configMaps, "default", "one").GetLabels(), c.Get(t, configMaps, "default", "one").GetOwnerReferences(), "default"
		copied.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
		c.Create(t, copied)
		start("one")()
		var names []string
		for _, o := range c.List(t, configMaps, "default") {
			names = append(names, o.GetName())
		}
		if slices.Sort(names); !slices.Equal(names, []string{"copied", "one"}) {
			t.Errorf("after the restart, there are %q", names)
		}
	})
}

func TestChildDeletedDuringADisconnectionIsRepairedAfterTheRelist(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, withItems("x", "a", "one"))
		settle()
		first := c.Get(t, configMaps, "default", "one").GetUID()
		down := c.Fault(gopftest.Requests("watch", "configmaps"), gopftest.Fail(503))
		lists := c.Fault(gopftest.Requests("list", "configmaps"), gopftest.Fail(503))
		c.CutStreams()
		c.Delete(t, configMaps, "default", "one")
		c.Expire()
		time.Sleep(30 * time.Second)
		if _, found := c.Lookup(t, configMaps, "default", "one"); found {
			t.Fatal("the child is back, although the operator could not see its deletion")
		}
		down.Stop()
		lists.Stop()
		time.Sleep(6 * time.Second) // the longest pause of a stream
		synctest.Wait()
		if got := c.Get(t, configMaps, "default", "one").GetUID(); got == first {
			t.Error("the child was not deleted")
		}
	})
}

func TestDependentChildrenWaitAndAreDeletedFirst(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			app := gopf.Want(r, deployment("app"))
			gopf.Want(r, childMap("after", "a"), gopf.DependsOn(app))
			return nil
		}, gopf.Owns[*corev1.ConfigMap](), gopf.Owns[*appsv1.Deployment]())
		gopf.For[*Example](op, resource).OnDelete("bye", func(_ context.Context, ch *gopf.Change[*Example]) error {
			if _, found := c.Lookup(t, configMaps, "default", "after"); !found {
				t.Error("a child was deleted before the deletion handler ran")
			}
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(testLog(t)))
		c.Create(t, example("x", "a"))
		settle()
		if _, found := c.Lookup(t, configMaps, "default", "after"); found {
			t.Error("the dependent child exists, although its dependency is not ready")
		}
		if got := c.Get(t, resource, "default", "x").GetFinalizers(); !slices.Equal(got, []string{"examples.kopf.dev/finalizer"}) {
			t.Errorf("the object has the finalizers %v", got)
		}
		condition := readyCondition(c.Get(t, resource, "default", "x"))
		if condition["status"] != "False" || !strings.Contains(fmt.Sprint(condition["message"]), "Deployment app") {
			t.Errorf("the condition is %v", condition)
		}
		makeReady(t, c, "app")
		settle()
		c.Get(t, configMaps, "default", "after")
		if condition := readyCondition(c.Get(t, resource, "default", "x")); condition["status"] != "True" {
			t.Errorf("the condition is %v", condition)
		}
		c.Delete(t, configMaps, "default", "after")
		c.PatchStatus(t, deployments, "default", "app", map[string]any{"status": map[string]any{"readyReplicas": 0, "availableReplicas": 0}})
		settle()
		c.Get(t, configMaps, "default", "after") // a repair does not wait

		c.Patch(t, configMaps, "default", "after", map[string]any{"metadata": map[string]any{"finalizers": []any{"test/hold"}}})
		settle()
		c.Delete(t, resource, "default", "x")
		settle()
		if got := c.Get(t, configMaps, "default", "after"); got.GetDeletionTimestamp() == nil {
			t.Error("the dependent child is not being deleted")
		}
		if got := c.Get(t, deployments, "default", "app"); got.GetDeletionTimestamp() != nil {
			t.Error("the dependency is being deleted, although the dependent child still exists")
		}
		if condition := readyCondition(c.Get(t, resource, "default", "x")); !strings.Contains(fmt.Sprint(condition["message"]), "ConfigMap after") {
			t.Errorf("the condition does not name the blocking child: %v", condition)
		}
		c.Patch(t, configMaps, "default", "after", map[string]any{"metadata": map[string]any{"finalizers": nil}})
		settle()
		for _, gone := range []string{deployments + " app", configMaps + " after", resource + " x"} {
			of, name, _ := strings.Cut(gone, " ")
			if _, found := c.Lookup(t, of, "default", name); found {
				t.Errorf("%s still exists", gone)
			}
		}
	})
}

func deployment(name string) *appsv1.Deployment {
	replicas := int32(1)
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example"}}},
		}},
	}
}

func makeReady(t *testing.T, c *gopftest.Cluster, name string) {
	t.Helper()
	generation := c.Get(t, deployments, "default", name).GetGeneration()
	c.PatchStatus(t, deployments, "default", name, map[string]any{"status": map[string]any{
		"observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
	}})
}

func readyCondition(o *unstructured.Unstructured) map[string]any {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if m := c.(map[string]any); m["type"] == "Ready" {
			return m
		}
	}
	return nil
}

func TestReconcileNeverOverlapsWithItselfOrWithChangeHandlers(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		busy := make(chan struct{}, 1)
		var total calls
		alone := func(what string) {
			select {
			case busy <- struct{}{}:
			default:
				t.Errorf("%s overlaps with another handler", what)
				return
			}
			total.add("%s", what)
			time.Sleep(300 * time.Millisecond)
			<-busy
		}
		op := owning()
		x := gopf.For[*Example](op, resource)
		x.OnUpdate("update", func(context.Context, *gopf.Change[*Example]) error { alone("update"); return nil })
		x.Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			alone("reconcile")
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap](), gopf.Every(time.Second))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, withItems("x", "a", "one"))
		time.Sleep(time.Second)
		for i := range 40 {
			time.Sleep(70 * time.Millisecond)
			c.Patch(t, configMaps, "default", "one", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"n": fmt.Sprint(i)}}})
			if i%3 == 0 {
				c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": fmt.Sprint(i)}})
			}
		}
		time.Sleep(5 * time.Second)
		if !slices.Contains(total.all(), "update") || len(total.all()) < 8 {
			t.Errorf("there were only the calls %v", total.all())
		}
	})
}

func TestChildEventsDoNotWakeTimers(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var timer, reconcile calls
		op := owning()
		x := gopf.For[*Example](op, resource)
		x.Timer("probe", 30*time.Second, func(context.Context, *gopf.Tick[*Example]) error { timer.add("tick"); return nil }, gopf.Optional())
		x.Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			reconcile.add("call")
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		x.Reconcile("others", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			timer.add("others")
			return nil
		}, gopf.Owns[*corev1.Secret]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, withItems("x", "a", "one"))
		settle()
		before := len(reconcile.all())
		for i := range 60 {
			c.Patch(t, configMaps, "default", "one", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"n": fmt.Sprint(i)}}})
			time.Sleep(time.Second)
		}
		ticks := slices.DeleteFunc(timer.all(), func(s string) bool { return s != "tick" })
		if len(ticks) > 4 {
			t.Errorf("the timer was called %d times in a minute", len(ticks))
		}
		if others := len(timer.all()) - len(ticks); others > 2 {
			t.Errorf("a handler that does not own the child was called %d times", others)
		}
		if got := len(reconcile.all()) - before; got != 60 {
			t.Errorf("60 changes of a child caused %d calls", got)
		}
	})
}

func TestForeignObjectsOfAnOwnedKindAreNotSentToTheOperator(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var log lines
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		c.Create(t, withItems("x", "a", "one"))
		foreign := childMap("foreign", "b")
		foreign.TypeMeta, foreign.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, "default"
		c.Create(t, foreign)
		settle()
		c.Patch(t, configMaps, "default", "foreign", map[string]any{"data": map[string]any{"key": "c"}})
		settle()
		for _, r := range c.Requests() {
			if r.Resource == "configmaps" && (r.Verb == "list" || r.Verb == "watch") && !strings.Contains(r.Path, "labelSelector=gopf.dev%2Fchildren%3Dexamples.kopf.dev") {
				t.Errorf("the request %s selects nothing", r.Path)
			}
		}
		if text := log.whole(); strings.Contains(text, "foreign") {
			t.Errorf("the log has lines about a foreign object:\n%s", text)
		}
	})
}

func TestFailingReconcileHandlersBackOffExponentially(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := owning()
		began := time.Now()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			diary.add("%.0f", time.Since(began).Seconds())
			gopf.Want(r, childMap("one", "a"))
			if r.Retry < 10 {
				return errors.New("not yet")
			}
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		began = time.Now()
		c.Create(t, example("x", "a"))
		time.Sleep(30 * time.Second)
		if _, found := c.Lookup(t, configMaps, "default", "one"); found {
			t.Error("a child was created, although the handler failed")
		}
		time.Sleep(time.Hour)
		want := []string{"0", "1", "3", "7", "15", "31", "63", "127", "255", "511", "811"}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("calls after %v seconds, want %v", got, want)
		}
		c.Get(t, configMaps, "default", "one")
	})
}

func TestObjectsOfOthersAreNotTakenOver(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		foreign := childMap("one", "foreign")
		foreign.TypeMeta, foreign.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, "default"
		c.Create(t, foreign)
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			var opts []gopf.WantOption
			if r.Object.Spec.Field == "adopt" {
				opts = append(opts, gopf.AdoptExisting())
			}
			gopf.Want(r, childMap("one", "ours"), opts...)
			gopf.Want(r, childMap("two", "ours"))
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, example("x", "a"))
		settle()
		value := func() string {
			v, _, _ := unstructured.NestedString(c.Get(t, configMaps, "default", "one").Object, "data", "key")
			return v
		}
		if got := value(); got != "foreign" {
			t.Errorf("the foreign object has the value %q", got)
		}
		c.Get(t, configMaps, "default", "two") // other children proceed
		if condition := readyCondition(c.Get(t, resource, "default", "x")); condition["reason"] != "Conflict" {
			t.Errorf("the condition is %v", condition)
		}
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "adopt"}})
		settle()
		if got := value(); got != "ours" {
			t.Errorf("the adopted object has the value %q", got)
		}
	})
}

func TestCreateOnlyFieldsBelongToOtherClientsAfterTheCreation(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			app := deployment("app")
			app.Spec.Template.Spec.Containers[0].Image = r.Object.Spec.Field
			gopf.Want(r, app, gopf.CreateOnlyFields("spec.replicas"))
			return nil
		}, gopf.Owns[*appsv1.Deployment]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, example("x", "a"))
		settle()
		seen := 0
		changes(c, &seen)
		ours := 0
		for n := range 60 {
			c.Patch(t, deployments, "default", "app", map[string]any{"spec": map[string]any{"replicas": n + 2}})
			time.Sleep(time.Second)
		}
		for _, write := range changes(c, &seen) {
			if write == "patch deployments/app" {
				ours++
			}
		}
		if ours > 1 {
			t.Errorf("%d writes to the child, want at most the one that gives the field away", ours)
		}
		replicas := func() int64 {
			n, _, _ := unstructured.NestedInt64(c.Get(t, deployments, "default", "app").Object, "spec", "replicas")
			return n
		}
		if got := replicas(); got != 61 {
			t.Errorf("the child has %d replicas", got)
		}
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		settle()
		if got := replicas(); got != 61 {
			t.Errorf("after a change of another field, the child has %d replicas", got)
		}
	})
}

func TestRepairsBackOffIfAnotherClientKeepsChangingAChild(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var log lines
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		c.Create(t, withItems("x", "a", "one"))
		settle()
		repairs := 0
		for i := range 50 {
			c.Patch(t, configMaps, "default", "one", map[string]any{"data": map[string]any{"key": fmt.Sprint(i)}})
			time.Sleep(time.Second)
			if v, _, _ := unstructured.NestedString(c.Get(t, configMaps, "default", "one").Object, "data", "key"); v == "a" {
				repairs++
			}
		}
		if repairs != 5 {
			t.Errorf("the child was repaired %d times in a minute", repairs)
		}
		if got := strings.Count(log.whole(), "use CreateOnlyFields for it"); got != 1 {
			t.Errorf("the fight was logged %d times", got)
		}
		time.Sleep(2 * time.Minute)
		if v, _, _ := unstructured.NestedString(c.Get(t, configMaps, "default", "one").Object, "data", "key"); v != "a" {
			t.Errorf("the child was not repaired after the fight: %q", v)
		}
	})
}

func TestChildrenInOtherNamespacesAreDeletedWithTheObject(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		c.CreateNamespace(t, "other")
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			child := childMap("far", r.Object.Spec.Field)
			child.Namespace = "other"
			gopf.Want(r, child)
			return nil
		}, gopf.Owns[*corev1.ConfigMap](gopf.InOtherNamespaces()))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, example("x", "a"))
		settle()
		if got := c.Get(t, configMaps, "other", "far"); len(got.GetOwnerReferences()) > 0 || got.GetAnnotations()["gopf.dev/owner"] == "" {
			t.Errorf("the child has the metadata %v", got.Object["metadata"])
		}
		c.Delete(t, configMaps, "other", "far")
		settle()
		c.Get(t, configMaps, "other", "far")
		c.Delete(t, resource, "default", "x")
		settle()
		if _, found := c.Lookup(t, configMaps, "other", "far"); found {
			t.Error("the child in another namespace outlives its owner")
		}
		if _, found := c.Lookup(t, resource, "default", "x"); found {
			t.Error("the object was not deleted")
		}
	})
}

// whole returns all log lines so far.
func (l *lines) whole() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.text, "")
}
