package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/hierarchy"
)

// handled runs a function as the handler of a new object default/x. The cluster serves
// config maps and secrets; only the Go type of config maps is declared.
func handled(t *testing.T, fn func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, resource, "v1/configmaps", "v1/secrets", "v1/nodes", "apps/v1/deployments")
		c.CreateNamespace(t, "other")
		op := gopf.New()
		op.Settings.Posting.ReportingComponent = "example-operator"
		gopf.RegisterType[*corev1.ConfigMap](op, "v1/configmaps")
		called := false
		gopf.For[*Example](op, resource).OnCreate("c", func(ctx context.Context, ch *gopf.Change[*Example]) error {
			if ch.Object.Name != "x" {
				return nil // created by the test itself
			}
			called = true
			fn(ctx, t, c, ch)
			return nil
		})
		gopftest.Start(t, op, c)
		settle()
		x := example("x", "a")
		x.SetLabels(map[string]string{"app": "x"})
		c.Create(t, x)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if !called {
			t.Error("the handler was not called")
		}
	})
}

func configMap(name string, data ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{}}
	for i := 0; i < len(data); i += 2 {
		cm.Data[data[i]] = data[i+1]
	}
	return cm
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func TestHandlersAdoptAndCreateAndChangeTypedChildren(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		child := configMap("", "k", "1")
		must(t, ch.Adopt(child))
		must(t, ch.API.Create(ctx, child))
		if !strings.HasPrefix(child.Name, "x-") || len(child.Name) != len("x-")+5 || child.UID == "" || child.ResourceVersion == "" {
			t.Errorf("created: %+v", child.ObjectMeta)
		}
		stored := gopftest.Get[*corev1.ConfigMap](t, c, "v1/configmaps", "default", child.Name)
		owner := metav1.GetControllerOf(stored)
		if owner == nil || owner.UID != ch.Object.UID || owner.APIVersion != "kopf.dev/v1" || owner.Kind != "KopfExample" || owner.Name != "x" ||
			stored.Labels["app"] != "x" || stored.Data["k"] != "1" || stored.Kind != "ConfigMap" {
			t.Errorf("stored: %+v", stored)
		}
		must(t, ch.API.Merge(ctx, configMap(child.Name), map[string]any{"data": map[string]string{"k": "2"}}))
		read, err := client.Get[*corev1.ConfigMap](ctx, ch.API, child.Name)
		if err != nil || read.Data["k"] != "2" {
			t.Errorf("merged: %+v, %v", read, err)
		}
		must(t, ch.API.Delete(ctx, read))
		must(t, ch.API.Delete(ctx, read)) // deleting a missing object is not an error
		if _, err := client.Get[*corev1.ConfigMap](ctx, ch.API, child.Name); !apierrors.IsNotFound(err) {
			t.Errorf("deleted: %v", err)
		}
	})
}

func TestGetReplacesTheWholeContentOfTheObject(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		c.Create(t, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cm"}, Data: map[string]string{"new": "1"}})
		cm := configMap("cm", "old", "1")
		cm.Labels = map[string]string{"old": "1"}
		must(t, ch.API.Get(ctx, cm))
		if diff := cmp.Diff(map[string]string{"new": "1"}, cm.Data); diff != "" || cm.Labels != nil {
			t.Errorf("%v, -want +got\n%s", cm.Labels, diff)
		}
	})
}

func TestUntypedObjectsAreCreatedAndRead(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]string{"k": "v"}}}
		must(t, ch.Adopt(secret, hierarchy.Strict()))
		must(t, ch.API.Create(ctx, secret))
		if secret.GetName() != "x" || secret.GetUID() == "" {
			t.Errorf("got %v", secret.Object)
		}
		read, err := client.Get[gopf.Unstructured](ctx, ch.API, "x", client.Of("v1/secrets"))
		if err != nil || read.GetUID() != secret.GetUID() {
			t.Errorf("got %v, %v", read, err)
		}
		typed, err := client.Get[*corev1.Secret](ctx, ch.API, "x", client.Of("secrets"))
		if err != nil || typed.UID != secret.GetUID() {
			t.Errorf("got %v, %v", typed, err)
		}
	})
}

func TestCreateFailsIfTheObjectExists(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		must(t, ch.API.Create(ctx, configMap("cm")))
		if err := ch.API.Create(ctx, configMap("cm")); !apierrors.IsAlreadyExists(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestListsSupportSelectorsAndPages(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		for i := range 1203 {
			cm := configMap(fmt.Sprintf("cm-%04d", i))
			cm.Labels = map[string]string{"third": fmt.Sprint(i%3 == 0)}
			cm.Namespace = "default"
			if i%2 == 0 {
				cm.Namespace = "other"
			}
			cm.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
			c.Create(t, cm)
		}
		count := func(want int, opts ...client.ListOption) {
			t.Helper()
			all, err := client.List[*corev1.ConfigMap](ctx, ch.API, opts...)
			if err != nil || len(all) != want {
				t.Errorf("got %d, %v; want %d", len(all), err, want)
			}
		}
		count(601)
		count(602, client.InNamespace("other"))
		count(1203, client.AllNamespaces())
		count(401, client.AllNamespaces(), client.LabelSelector("third=true"))
		count(1, client.FieldSelector("metadata.name=cm-0001"))
		before := c.Count(gopftest.Requests("list", "configmaps"))
		for cm, err := range client.Each[*corev1.ConfigMap](ctx, ch.API, client.AllNamespaces()) {
			if err != nil || cm.Name != "cm-0001" || cm.Kind != "ConfigMap" {
				t.Errorf("got %v, %v", cm, err)
			}
			break
		}
		if n := c.Count(gopftest.Requests("list", "configmaps")) - before; n != 1 {
			t.Errorf("%d requests for one object", n)
		}
	})
}

func TestAListContinuesAfterItsVersionExpired(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		for i := range 1100 {
			cm := configMap(fmt.Sprintf("cm-%04d", i))
			cm.Namespace, cm.TypeMeta = "default", metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
			c.Create(t, cm)
		}
		seen := map[string]bool{}
		for cm, err := range client.Each[*corev1.ConfigMap](ctx, ch.API) {
			if err != nil {
				t.Error(err)
				return
			}
			seen[cm.Name] = true
			if len(seen) == 100 {
				must(t, ch.API.Delete(ctx, configMap("cm-1099")))
				c.Expire()
			}
		}
		if len(seen) != 1099 {
			t.Errorf("%d objects were listed", len(seen))
		}
	})
}

func TestWritesWithLostResponsesAreConfirmed(t *testing.T) {
	const maps = "configmaps"
	for name, test := range map[string]struct {
		fault  gopftest.Match
		effect gopftest.Effect
		act    func(context.Context, client.Client) error
		made   int // writes sent
		want   map[string]string
	}{
		"a creation that was made": {gopftest.Requests("create", maps).Nth(1), gopftest.LoseAnswer(),
			func(ctx context.Context, api client.Client) error { return api.Create(ctx, configMap("cm", "k", "1")) },
			1, map[string]string{"cm": "1"}},
		"a creation whose answer is garbled": {gopftest.Requests("create", maps).Nth(1), gopftest.Garble(),
			func(ctx context.Context, api client.Client) error { return api.Create(ctx, configMap("cm", "k", "1")) },
			1, map[string]string{"cm": "1"}},
		"a creation that was not made": {gopftest.Requests("create", maps).Nth(1), gopftest.Drop(),
			func(ctx context.Context, api client.Client) error { return api.Create(ctx, configMap("cm", "k", "1")) },
			2, map[string]string{"cm": "1"}},
		"a creation with a generated name": {gopftest.Requests("create", maps).Nth(1), gopftest.LoseAnswer(),
			func(ctx context.Context, api client.Client) error {
				cm := configMap("", "k", "1")
				cm.GenerateName = "cm-"
				err := api.Create(ctx, cm)
				if cm.UID == "" {
					return fmt.Errorf("it was not created: %w", err)
				}
				return err
			},
			1, map[string]string{"cm-?": "1"}},
		"a merge that was made": {gopftest.Requests("patch", maps).Nth(1), gopftest.LoseAnswer(),
			func(ctx context.Context, api client.Client) error {
				return api.Merge(ctx, configMap("old"), map[string]any{"data": map[string]any{"k": "2", "gone": nil}})
			},
			1, map[string]string{"old": "2"}},
		"a merge that was not made": {gopftest.Requests("patch", maps).Nth(1), gopftest.Drop(),
			func(ctx context.Context, api client.Client) error {
				return api.Merge(ctx, configMap("old"), map[string]any{"data": map[string]any{"k": "2"}})
			},
			2, map[string]string{"old": "2"}},
		"a merge into one version": {gopftest.Requests("patch", maps).Nth(1), gopftest.LoseAnswer(),
			func(ctx context.Context, api client.Client) error {
				old, err := client.Get[*corev1.ConfigMap](ctx, api, "old")
				if err != nil {
					return err
				}
				return api.Merge(ctx, old, map[string]any{
					"metadata": map[string]any{"resourceVersion": old.ResourceVersion}, "data": map[string]any{"k": "2"}})
			},
			1, map[string]string{"old": "2"}},
		"an apply that was made": {gopftest.Requests("patch", maps).Nth(1), gopftest.LoseAnswer(),
			func(ctx context.Context, api client.Client) error { return api.Apply(ctx, configMap("cm", "k", "1")) },
			1, map[string]string{"cm": "1"}},
		"an apply that was not made": {gopftest.Requests("patch", maps).Nth(1), gopftest.Drop(),
			func(ctx context.Context, api client.Client) error { return api.Apply(ctx, configMap("cm", "k", "1")) },
			2, map[string]string{"cm": "1"}},
		"a deletion that was made": {gopftest.Requests("delete", maps).Nth(1), gopftest.LoseAnswer(),
			func(ctx context.Context, api client.Client) error { return api.Delete(ctx, configMap("old")) },
			1, nil},
		"a deletion by uid that was not made": {gopftest.Requests("delete", maps).Nth(1), gopftest.Drop(),
			func(ctx context.Context, api client.Client) error {
				old, err := client.Get[*corev1.ConfigMap](ctx, api, "old")
				if err != nil {
					return err
				}
				return api.Delete(ctx, old)
			},
			2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
				if test.want["old"] != "" || test.want == nil {
					must(t, ch.API.Create(ctx, configMap("old", "k", "1")))
				}
				before := len(c.Writes(maps))
				fault := c.Fault(test.fault, test.effect)
				must(t, test.act(ctx, ch.API))
				if fault.Struck() != 1 {
					t.Errorf("the fault affected %d requests", fault.Struck())
				}
				if n := len(c.Writes(maps)) - before; n != test.made {
					t.Errorf("%d writes, want %d", n, test.made)
				}
				got := map[string]string{}
				for _, cm := range c.List(t, "v1/configmaps", "default") {
					name := cm.GetName()
					if strings.HasPrefix(name, "cm-") {
						name = "cm-?"
					}
					got[name], _, _ = unstructured.NestedString(cm.Object, "data", "k")
				}
				if diff := cmp.Diff(test.want, got); diff != "" && len(test.want)+len(got) > 0 {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		})
	}
}

func TestCreateFailsIfAnotherClientWonAfterALostResponse(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		c.Fault(gopftest.Requests("create", "configmaps").Nth(1), gopftest.Before(func(gopftest.Request) {
			other := configMap("cm", "k", "theirs")
			other.Namespace, other.TypeMeta = "default", metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
			c.Create(t, other)
		}), gopftest.LoseAnswer())
		if err := ch.API.Create(ctx, configMap("cm", "k", "ours")); !apierrors.IsAlreadyExists(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestADeletionByNameIsNotRepeatedAfterALostResponse(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		must(t, ch.API.Create(ctx, configMap("cm")))
		c.Fault(gopftest.Requests("delete", "configmaps").Nth(1), gopftest.Drop())
		err := ch.API.Delete(ctx, configMap("cm"))
		if _, unknown := err.(*client.UnknownOutcomeError); !unknown || c.Count(gopftest.Requests("delete", "configmaps")) != 1 {
			t.Errorf("got %v", err)
		}
	})
}

func TestDeleteIsBoundToTheUID(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		first, second := configMap("cm"), configMap("cm")
		must(t, ch.API.Create(ctx, first))
		must(t, ch.API.Delete(ctx, configMap("cm")))
		must(t, ch.API.Create(ctx, second))
		must(t, ch.API.Delete(ctx, first)) // already deleted
		now, err := client.Get[*corev1.ConfigMap](ctx, ch.API, "cm")
		if err != nil || now.UID != second.UID {
			t.Errorf("got %v, %v", now, err)
		}
		must(t, ch.API.Merge(ctx, configMap("cm"), []byte(`{"data":{"k":"2"}}`)))
		if err := ch.API.Delete(ctx, second, client.IfUnchanged()); !apierrors.IsConflict(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAppliedFieldsBelongToTheOperator(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		must(t, ch.API.Apply(ctx, configMap("cm", "a", "1", "b", "1")))
		must(t, ch.API.Apply(ctx, configMap("cm", "a", "2"))) // removes b
		must(t, ch.API.Apply(ctx, configMap("cm", "c", "3"), client.FieldManager("another")))
		now, err := client.Get[*corev1.ConfigMap](ctx, ch.API, "cm")
		if err != nil {
			t.Error(err)
			return
		}
		if diff := cmp.Diff(map[string]string{"a": "2", "c": "3"}, now.Data); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		var managers []string
		for _, m := range c.Get(t, "v1/configmaps", "default", "cm").GetManagedFields() {
			managers = append(managers, m.Manager)
		}
		slices.Sort(managers)
		if !slices.Equal(managers, []string{"another", "example-operator"}) {
			t.Errorf("got %q", managers)
		}
		err = ch.API.Apply(ctx, configMap("cm", "c", "4"))
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "another") {
			t.Errorf("got %v", err)
		}
		forced := configMap("cm", "c", "4")
		must(t, ch.API.Apply(ctx, forced, client.Force()))
		if diff := cmp.Diff(map[string]string{"c": "4"}, forced.Data); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestTheStatusIsWrittenWithAndWithoutASubresource(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		// For another object of the same kind, and for a kind without a status subresource.
		y := example("y", "b")
		must(t, ch.API.Create(ctx, y))
		must(t, ch.API.Merge(ctx, y, map[string]any{"status": map[string]any{"a": "1"}}, client.StatusSubresource()))
		deployment := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "d"},
			"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
				"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}}}}
		must(t, ch.API.Create(ctx, deployment))
		must(t, ch.API.Merge(ctx, deployment, map[string]any{"status": map[string]any{"observedGeneration": 7}}, client.StatusSubresource()))
		if n, _, _ := unstructured.NestedInt64(deployment.Object, "status", "observedGeneration"); n != 7 {
			t.Errorf("got %v", deployment.Object["status"])
		}
		must(t, ch.API.Merge(ctx, deployment, map[string]any{"status": map[string]any{"observedGeneration": 8}}))
		if n, _, _ := unstructured.NestedInt64(deployment.Object, "status", "observedGeneration"); n != 7 {
			t.Errorf("without the option: got %v", deployment.Object["status"])
		}
		if diff := cmp.Diff(map[string]any{"a": "1"}, y.Object["status"]); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestEventsArePostedAboutOtherObjects(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		cm := configMap("cm")
		must(t, ch.API.Create(ctx, cm))
		ch.API.Event(client.About(cm), client.Normal, "Made", "It is made.")
		ch.API.Event(client.About(&Example{}, &corev1.Pod{}), client.Normal, "Odd", "It cannot be identified.")
		ch.API.Event(client.About(cm), "Custom", "Kept", "%d of %d", 1, 2)
		time.Sleep(time.Second)
		var about []string
		for _, e := range c.List(t, "v1/events", "default") {
			involved, _, _ := unstructured.NestedStringMap(e.Object, "involvedObject")
			about = append(about, fmt.Sprint(e.Object["reason"], " ", involved["kind"], " ", involved["name"], " ", involved["uid"] == string(cm.UID)))
		}
		slices.Sort(about)
		if diff := cmp.Diff([]string{"Kept ConfigMap cm true", "Made ConfigMap cm true"}, about); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestErrorsExplainUnknownKinds(t *testing.T) {
	type Node struct { // not registered anywhere, and without TypeMeta
		metav1.ObjectMeta `json:"metadata"`
	}
	type Widget struct{ metav1.ObjectMeta }
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		inCore := configMap("cm")
		inCore.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Confusion"}
		var nothing *corev1.ConfigMap
		for says, err := range map[string]error{
			`get: unknown resource of *engine_test.Node: add gopf.RegisterType[*engine_test.Node](op, "v1/nodes") to the declaration`:        ch.API.Get(ctx, &Node{}),
			`add gopf.RegisterType[*engine_test.Widget](op, "GROUP/VERSION/PLURAL") to the declaration of the operator, or set its TypeMeta`: ch.API.Create(ctx, &Widget{}),
			"set its apiVersion and kind":                                   ch.API.Delete(ctx, &unstructured.Unstructured{}),
			"the cluster has no resource Confusion of v1":                   ch.API.Apply(ctx, inCore),
			"the cluster has no resource example.com/v1/widgets":            ch.API.Get(ctx, configMap("cm"), client.Of("example.com/v1/widgets")),
			"the object of configmaps.v1 has no name":                       ch.API.Get(ctx, configMap("")),
			`nodes.v1 are cluster-scoped; remove the namespace`:             ch.API.Get(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "ns"}}, client.Of("v1/nodes")),
			"the object is a nil *v1.ConfigMap":                             ch.API.Get(ctx, nothing),
			"the patch is nil":                                              ch.API.Merge(ctx, configMap("cm"), nil),
			"encode the patch as a JSON object":                             ch.API.Merge(ctx, configMap("cm"), []string{"a"}),
			"too many parts":                                                ch.API.Get(ctx, configMap("cm"), client.Of("a/b/c/d")),
			"IfUnchanged requires a resourceVersion; read the object first": ch.API.Delete(ctx, configMap("cm"), client.IfUnchanged()),
		} {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("got  %v\nwant %s", err, says)
			}
		}
		if _, err := client.List[*Widget](ctx, ch.API); err == nil || !strings.Contains(err.Error(), "RegisterType[*engine_test.Widget]") {
			t.Errorf("got %v", err)
		}
	})
}

func TestNamespacedObjectsCannotAdoptClusterScopedOnes(t *testing.T) {
	handled(t, func(_ context.Context, t *testing.T, _ *gopftest.Cluster, ch *gopf.Change[*Example]) {
		node := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}}
		err := ch.Adopt([]any{node})
		if err == nil || !strings.Contains(err.Error(), `KopfExample x in the namespace "default" cannot own a cluster-scoped one`) || node.GenerateName != "" {
			t.Errorf("got %v, %+v", err, node.ObjectMeta)
		}
		child := configMap("cm")
		must(t, ch.Adopt(child))
		if !cmp.Equal(child.OwnerReferences, []metav1.OwnerReference{ch.OwnerReference()}) {
			t.Errorf("got %v", child.OwnerReferences)
		}
		must(t, ch.Disown(child))
		if len(child.OwnerReferences) != 0 {
			t.Errorf("got %v", child.OwnerReferences)
		}
	})
}

func TestKindsDefinedAtRuntimeAreFound(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		c.Define(t, gopftest.Kind{Group: "example.com", Version: "v1", Plural: "gadgets", Kind: "Gadget", Namespaced: true})
		gadget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "g"}}}
		must(t, ch.API.Create(ctx, gadget))
		if gadget.GetNamespace() != "default" {
			t.Errorf("got %v", gadget.Object)
		}
	})
}

func TestActivitiesHaveAnAPI(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("c", func(context.Context, *gopf.Change[*Example]) error { return nil })
		seen := -1
		op.OnCleanup("count", func(ctx context.Context, a *gopf.Activity) error {
			all, err := client.List[*Example](ctx, a.API)
			seen = len(all)
			if err := a.API.Create(ctx, &Example{ObjectMeta: metav1.ObjectMeta{Name: "z"}}); err == nil || !strings.Contains(err.Error(), "client.InNamespace") {
				t.Errorf("without a namespace: %v", err)
			}
			return err
		})
		stop := gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		settle()
		stop()
		if seen != 1 {
			t.Errorf("%d objects were listed", seen)
		}
	})
}

func TestATypedNilSelectsTheKindToList(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, _ *gopftest.Cluster, ch *gopf.Change[*Example]) {
		if err := ch.API.Create(ctx, configMap("one")); err != nil {
			t.Error(err)
		}
		var names []string
		for obj, err := range ch.API.List(ctx, (*corev1.ConfigMap)(nil)) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, obj.GetName())
		}
		if !slices.Contains(names, "one") {
			t.Errorf("got %q", names)
		}
	})
}
