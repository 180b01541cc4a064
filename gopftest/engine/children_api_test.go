package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/hierarchy"
)

func TestChildrenAreCreatedAndAppliedWithTheirOwner(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		want := []metav1.OwnerReference{ch.OwnerReference()}
		must(t, ch.API.Apply(ctx, configMap("applied", "k", "1"), client.OwnedBy(ch.Object)))
		must(t, ch.API.Apply(ctx, configMap("applied", "k", "2"), client.OwnedBy(ch.Object)))
		must(t, ch.API.Create(ctx, configMap("created"), client.OwnedBy(ch.Object)))
		for _, name := range []string{"applied", "created"} {
			stored := gopftest.Get[*corev1.ConfigMap](t, c, "v1/configmaps", "default", name)
			if diff := cmp.Diff(want, stored.OwnerReferences); diff != "" {
				t.Errorf("%s, -want +got\n%s", name, diff)
			}
		}
		var outside *hierarchy.OutsideError
		if err := ch.API.Create(ctx, configMap("far"), client.OwnedBy(ch.Object), client.InNamespace("other")); !errors.As(err, &outside) {
			t.Errorf("a child in another namespace: got %v", err)
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		if err := ch.API.Apply(ctx, node, client.OwnedBy(ch.Object)); !errors.As(err, &outside) {
			t.Errorf("a cluster-scoped child: got %v", err)
		}
		if err := ch.API.Apply(ctx, configMap("orphan"), client.OwnedBy(configMap("unread"))); err == nil {
			t.Error("an owner without a UID is accepted")
		}
		for name, err := range map[string]error{
			"far":    ch.API.Get(ctx, configMap("far"), client.InNamespace("other")),
			"orphan": ch.API.Get(ctx, configMap("orphan")),
		} {
			if !apierrors.IsNotFound(err) {
				t.Errorf("%s was written: %v", name, err)
			}
		}
	})
}

func TestAnObjectIsCreatedOnlyIfThereIsNone(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		for i, want := range []bool{true, false} {
			created, err := client.CreateIfAbsent(ctx, ch.API, configMap("once", "k", fmt.Sprint(i)), client.OwnedBy(ch.Object))
			if created != want || err != nil {
				t.Errorf("call %d: got %v, %v", i, created, err)
			}
		}
		if stored := gopftest.Get[*corev1.ConfigMap](t, c, "v1/configmaps", "default", "once"); stored.Data["k"] != "0" {
			t.Errorf("the existing object was changed: %v", stored.Data)
		}
		if created, err := client.CreateIfAbsent(ctx, ch.API, configMap("once"), client.InNamespace("missing")); created || err == nil {
			t.Errorf("a missing namespace: got %v, %v", created, err)
		}
	})
}

func TestObjectsAreListedByTheirLabels(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, _ *gopftest.Cluster, ch *gopf.Change[*Example]) {
		for name, tier := range map[string]string{"a": "gold", "b": "silver", "c": "gold"} {
			cm := configMap(name)
			cm.Labels = map[string]string{"tier": tier, "app": "x"}
			must(t, ch.API.Create(ctx, cm))
		}
		for want, required := range map[int]map[string]string{
			2: {"tier": "gold", "app": "x"}, 0: {"tier": "gold", "app": "y"}, 3: {"app": "x"},
		} {
			got, err := client.List[*corev1.ConfigMap](ctx, ch.API, client.MatchLabels(required))
			if err != nil || len(got) != want {
				t.Errorf("%v: got %d objects, %v", required, len(got), err)
			}
		}
	})
}

// A slim container has fewer fields than a real one.
type slim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Name  string `json:"name"`
					Image string `json:"image"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

func servedDeployment(name string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "default", "name": name},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{"containers": []any{
					map[string]any{"name": "main", "image": "a:1", "workingDir": "/main"},
					map[string]any{"name": "side", "image": "b:1", "workingDir": "/side"},
				}},
			},
		},
	}}
}

func TestAnEditKeepsFieldsThatTheTypeLacks(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		c.Create(t, servedDeployment("web"))
		edited, err := client.Edit(ctx, ch.API, "web", func(d *slim) error {
			list := d.Spec.Template.Spec.Containers
			list[0], list[1] = list[1], list[0]
			list[1].Image = "a:2"
			d.Labels = map[string]string{"edited": "yes"}
			return nil
		}, client.Of("apps/v1/deployments"))
		if err != nil || edited.Labels["edited"] != "yes" {
			t.Fatalf("got %+v, %v", edited, err)
		}
		stored := gopftest.Get[*appsv1.Deployment](t, c, "apps/v1/deployments", "default", "web")
		var got []string
		for _, one := range stored.Spec.Template.Spec.Containers {
			got = append(got, one.Name+" "+one.Image+" "+one.WorkingDir)
		}
		if diff := cmp.Diff([]string{"side b:1 /side", "main a:2 /main"}, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestAnEditStartsOverAfterAConflict(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		must(t, ch.API.Create(ctx, configMap("cm", "n", "0")))
		calls := 0
		edited, err := client.Edit(ctx, ch.API, "cm", func(cm *corev1.ConfigMap) error {
			if calls++; calls <= 3 {
				c.Patch(t, "v1/configmaps", "default", "cm", map[string]any{"data": map[string]any{"other": fmt.Sprint(calls)}})
			}
			cm.Data["n"] = fmt.Sprint(calls)
			return nil
		})
		if err != nil || calls != 4 || edited.Data["n"] != "4" || edited.Data["other"] != "3" {
			t.Errorf("got %+v, %v after %d calls", edited, err, calls)
		}
		calls = 0
		_, err = client.Edit(ctx, ch.API, "cm", func(cm *corev1.ConfigMap) error {
			calls++
			c.Patch(t, "v1/configmaps", "default", "cm", map[string]any{"data": map[string]any{"other": fmt.Sprint("again ", calls)}})
			cm.Data["n"] = "never"
			return nil
		})
		if !apierrors.IsConflict(err) || calls != 6 {
			t.Errorf("endless conflicts: got %v after %d calls", err, calls)
		}
	})
}

func TestAnEditThatChangesNothingOrFailsWritesNothing(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		must(t, ch.API.Create(ctx, configMap("cm", "n", "0")))
		before := gopftest.Get[*corev1.ConfigMap](t, c, "v1/configmaps", "default", "cm").ResourceVersion
		if _, err := client.Edit(ctx, ch.API, "cm", func(*corev1.ConfigMap) error { return nil }); err != nil {
			t.Error(err)
		}
		failure := errors.New("not today")
		_, err := client.Edit(ctx, ch.API, "cm", func(cm *corev1.ConfigMap) error {
			cm.Data["n"] = "1"
			return failure
		})
		if !errors.Is(err, failure) {
			t.Errorf("got %v", err)
		}
		if after := gopftest.Get[*corev1.ConfigMap](t, c, "v1/configmaps", "default", "cm").ResourceVersion; after != before {
			t.Error("something was written")
		}
		if _, err := client.Edit(ctx, ch.API, "missing", func(*corev1.ConfigMap) error { return nil }); !apierrors.IsNotFound(err) {
			t.Errorf("a missing object: got %v", err)
		}
		if _, err := client.Edit(ctx, ch.API, "cm", func(*corev1.ConfigMap) error { return nil }, client.ScaleSubresource()); err == nil {
			t.Error("the scale subresource is accepted")
		}
	})
}

func TestAnEditOfTheStatusWritesOnlyTheStatus(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		c.Create(t, servedDeployment("web"))
		edit := func(d *appsv1.Deployment) error {
			d.Status.ReadyReplicas = 3
			d.Labels = map[string]string{"edited": "yes"}
			return nil
		}
		if _, err := client.Edit(ctx, ch.API, "web", edit, client.StatusSubresource()); err != nil {
			t.Fatal(err)
		}
		stored := gopftest.Get[*appsv1.Deployment](t, c, "apps/v1/deployments", "default", "web")
		if stored.Status.ReadyReplicas != 3 || stored.Labels["edited"] != "" {
			t.Errorf("the status was edited: %+v", stored)
		}
		must(t, client.Scale(ctx, ch.API, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, 5))
		if stored = gopftest.Get[*appsv1.Deployment](t, c, "apps/v1/deployments", "default", "web"); *stored.Spec.Replicas != 5 {
			t.Errorf("scaled to %d", *stored.Spec.Replicas)
		}
	})
}
