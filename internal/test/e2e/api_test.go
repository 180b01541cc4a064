package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/hierarchy"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// inHandler runs a function as the handler of a new object in a namespace of its
// own, and returns when it is over, with the operator still running.
func inHandler(t *testing.T, fn func(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error) {
	t.Helper()
	handledIn(examples(t, namespace(t)), fn)
}

// handledIn is inHandler for an object of any kind, named "owner".
func handledIn(o objects, fn func(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error) {
	o.t.Helper()
	op := gopf.New()
	op.Settings.Posting.ReportingComponent = "e2e-operator"
	gopf.RegisterType[*corev1.ConfigMap](op, "v1/configmaps")
	gopf.RegisterType[*appsv1.Deployment](op, "apps/v1/deployments")
	done := make(chan error, 1)
	op.Resource(o.kind).WithLabel("app", gopf.Is("owner")).OnCreate("create", func(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
		done <- fn(ctx, c)
		return nil
	})
	run(o.t, op, gopf.Namespaces(o.namespace))
	o.create("owner", map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "owner"}}})
	select {
	case err := <-done:
		if err != nil {
			o.t.Error(err)
		}
	case <-time.After(kit.Patience):
		o.t.Fatalf("the handler was not over within %v", kit.Patience)
	}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func TestAdoptedChildrenAreDeletedWithTheirOwner(t *testing.T) {
	t.Parallel()
	resource := func(kind, plural, namespace string) objects {
		return objects{t, namespace, kind, schema.GroupVersionResource{Version: "v1", Resource: plural}}
	}
	// The garbage collector learns of custom resources only twice a minute.
	owners := resource("ServiceAccount", "serviceaccounts", namespace(t))
	maps, secrets := resource("ConfigMap", "configmaps", owners.namespace), resource("Secret", "secrets", owners.namespace)
	var typed, untyped string
	handledIn(owners, func(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
		cm, secret := configMap("", map[string]string{"a": "1"}), newUntyped("v1", "Secret")
		if err := c.Adopt([]any{cm, secret}); err != nil {
			return err
		}
		if err := c.API.Create(ctx, cm); err != nil {
			return err
		}
		if err := c.API.Create(ctx, secret); err != nil {
			return err
		}
		typed, untyped = cm.Name, secret.GetName()
		if cm.Labels["app"] != "owner" || secret.GetLabels()["app"] != "owner" {
			t.Errorf("labels: %v, %v", cm.Labels, secret.GetLabels())
		}
		return nil
	})
	owners.awaitHandled("owner")
	if maps.get(typed) == nil || secrets.get(untyped) == nil {
		t.Fatalf("the children %s and %s do not exist", typed, untyped)
	}
	owners.delete("owner")
	maps.awaitCollected(typed)
	secrets.awaitCollected(untyped)
}

func newUntyped(apiVersion, kind string) gopf.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
}

func TestOwnersAreRefusedWhereTheClusterWouldDeleteTheirChildren(t *testing.T) {
	t.Parallel()
	inHandler(t, func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		role := &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}}
		if err := c.Adopt(role); err == nil || !strings.Contains(err.Error(), "cluster-scoped") {
			t.Errorf("a cluster-scoped child: %v", err)
		}
		elsewhere := configMap("cm", nil)
		elsewhere.Namespace = "default"
		if err := c.Adopt(elsewhere); err == nil || !strings.Contains(err.Error(), `"default"`) {
			t.Errorf("a child in another namespace: %v", err)
		}
		return nil
	})
}

func TestAppliesConflictUnlessForced(t *testing.T) {
	t.Parallel()
	inHandler(t, func(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
		if err := c.API.Apply(ctx, configMap("cm", map[string]string{"a": "1", "b": "1"})); err != nil {
			return err
		}
		if err := c.API.Merge(ctx, configMap("cm", nil), map[string]any{"data": map[string]any{"b": "theirs"}}); err != nil {
			return err
		}
		err := c.API.Apply(ctx, configMap("cm", map[string]string{"a": "1", "b": "2"}))
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), ".data.b") {
			t.Errorf("not forced: %v", err)
		}
		forced := configMap("cm", map[string]string{"b": "2"})
		if err := c.API.Apply(ctx, forced, client.Force()); err != nil {
			return err
		}
		if diff := cmp.Diff(map[string]string{"b": "2"}, forced.Data); diff != "" { // a is not wanted anymore
			t.Errorf("-want +got\n%s", diff)
		}
		return nil
	})
}

func TestTypedObjectsOfBuiltInKindsAreAppliedAndScaled(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"app": "web"}
	deployment := func() *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Template.Labels = labels
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
		return d
	}
	inHandler(t, func(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
		d := deployment()
		if err := c.Adopt(d, hierarchy.Nested("spec.template")); err != nil {
			return err
		}
		for range 2 { // the second time changes nothing
			if err := c.API.Apply(ctx, d); err != nil {
				return err
			}
			if d.UID == "" || d.Spec.Replicas == nil || *d.Spec.Replicas != 1 {
				t.Errorf("applied: %+v", d)
			}
			d = deployment()
			if err := c.Adopt(d, hierarchy.Nested("spec.template")); err != nil {
				return err
			}
		}
		if err := c.API.Merge(ctx, d, map[string]any{"spec": map[string]any{"replicas": 3}}, client.ScaleSubresource()); err != nil {
			return err
		}
		if err := c.API.Merge(ctx, d, map[string]any{"status": map[string]any{"collisionCount": 7}}, client.StatusSubresource()); err != nil {
			return err
		}
		now, err := client.Get[*appsv1.Deployment](ctx, c.API, "web")
		if err != nil {
			return err
		}
		if *now.Spec.Replicas != 3 || now.Status.CollisionCount == nil || *now.Status.CollisionCount != 7 {
			t.Errorf("got %+v, %+v", now.Spec.Replicas, now.Status)
		}
		status := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		status.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Ours", Status: corev1.ConditionTrue}}
		if err := c.API.Apply(ctx, status, client.StatusSubresource(), client.FieldManager("conditions")); err != nil {
			return err
		}
		if len(status.Spec.Template.Spec.Containers) != 1 {
			t.Errorf("the rest has changed: %+v", status.Spec)
		}
		return nil
	})
}

func TestListsGoOverPages(t *testing.T) {
	t.Parallel()
	inHandler(t, func(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
		names := map[string]bool{}
		for i := range 600 {
			cm := configMap("", map[string]string{"i": fmt.Sprint(i)})
			cm.GenerateName = "many-"
			cm.Labels = map[string]string{"third": fmt.Sprint(i%3 == 0)}
			if err := c.API.Create(ctx, cm); err != nil {
				return err
			}
			names[cm.Name] = true
		}
		if len(names) != 600 {
			t.Errorf("%d names", len(names))
		}
		seen := 0
		for cm, err := range client.Each[*corev1.ConfigMap](ctx, c.API, client.LabelSelector("third")) {
			if err != nil {
				return err
			}
			if cm.Kind != "ConfigMap" || !names[cm.Name] {
				t.Errorf("got %+v", cm)
			}
			seen++
		}
		third, err := client.List[*corev1.ConfigMap](ctx, c.API, client.LabelSelector("third=true"))
		if err != nil {
			return err
		}
		one, err := client.List[gopf.Unstructured](ctx, c.API, client.Of("v1/configmaps"), client.AllNamespaces(), client.FieldSelector("metadata.name="+third[0].Name))
		if err != nil {
			return err
		}
		if seen != 600 || len(third) != 200 || len(one) != 1 {
			t.Errorf("%d, %d and %d objects are listed", seen, len(third), len(one))
		}
		return nil
	})
}

func TestDeletionsAreNarrowedAndPropagated(t *testing.T) {
	t.Parallel()
	inHandler(t, func(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
		parent := configMap("parent", nil)
		if err := c.API.Create(ctx, parent); err != nil {
			return err
		}
		child := configMap("child", nil)
		parent.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
		if err := hierarchy.AppendOwnerReference(child, parent); err != nil {
			return err
		}
		if err := c.API.Create(ctx, child); err != nil {
			return err
		}
		old := parent.DeepCopy()
		if err := c.API.Merge(ctx, parent, map[string]any{"data": map[string]any{"a": "1"}}); err != nil {
			return err
		}
		if err := c.API.Delete(ctx, old, client.IfUnchanged()); !apierrors.IsConflict(err) {
			t.Errorf("a changed object: %v", err)
		}
		if err := c.API.Delete(ctx, old, client.Propagation(metav1.DeletePropagationOrphan)); err != nil {
			return err
		}
		again := configMap("parent", nil)
		kit.Await(t, "the name is free", func() bool { return c.API.Create(ctx, again) == nil })
		if err := c.API.Delete(ctx, old); err != nil { // another object has the name now
			t.Error(err)
		}
		for _, name := range []string{"parent", "child"} {
			if _, err := client.Get[*corev1.ConfigMap](ctx, c.API, name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	})
}

// unnamed is a type that no operator has declared.
type unnamed struct{ corev1.Pod }

func TestWhatTheOperatorDoesNotKnowIsExplained(t *testing.T) {
	t.Parallel()
	inHandler(t, func(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
		_, err := client.Get[*unnamed](ctx, c.API, "web")
		if want := "gopf.RegisterType[*e2e.unnamed](op, "; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a type that is not named: got %v, want %s", err, want)
		}
		err = c.API.Create(ctx, newUntyped("example.com/v1", "Widget"))
		if err == nil || !strings.Contains(err.Error(), "the cluster has no resource Widget of example.com/v1; is its CRD installed?") {
			t.Errorf("a kind that does not exist: %v", err)
		}
		return nil
	})
}
