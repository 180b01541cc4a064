package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/gopftest"
)

type workerGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas int            `json:"replicas"`
		Pod      corev1.PodSpec `json:"pod"`
	} `json:"spec"`
}

// scaleWorkers has the shape of the largest handler of Dask: it compares the workers of a
// group with the wanted number, and creates or deletes Deployments.
func scaleWorkers(ctx context.Context, ch *gopf.Change[*workerGroup]) error {
	labels := map[string]string{"group": ch.Object.Name}
	workers, err := client.List[*appsv1.Deployment](ctx, ch.API, client.MatchLabels(labels))
	if err != nil {
		return err
	}
	for i := range max(ch.Object.Spec.Replicas, len(workers)) {
		if i >= ch.Object.Spec.Replicas {
			err = ch.API.Delete(ctx, workers[i])
		} else {
			worker := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(ch.Object.Name, "-", i), Labels: labels}}
			worker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"worker": worker.Name}}
			worker.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: worker.Spec.Selector.MatchLabels}, Spec: ch.Object.Spec.Pod}
			_, err = client.CreateIfAbsent(ctx, ch.API, worker, client.OwnedBy(ch.Object))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func adaptWorkers(ctx context.Context, tick *gopf.Tick[*Example]) error {
	_, err := client.Edit(ctx, tick.API, tick.Object.Name, func(g *workerGroup) error {
		g.Spec.Replicas = len(tick.Object.Spec.Items)
		return nil
	})
	return err
}

func TestWorkersAreScaledWithoutHelpers(t *testing.T) {
	const groups, deployments = "kubernetes.dask.org/v1/daskworkergroups", "apps/v1/deployments"
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, resource, groups, deployments)
		op := gopf.New()
		gopf.For[*workerGroup](op, groups).OnField("scale", "spec.replicas", scaleWorkers)
		gopf.For[*Example](op, resource).Timer("adapt", 5*time.Second, adaptWorkers)
		gopftest.Start(t, op, c)
		group := &workerGroup{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
		group.Spec.Pod.Containers = []corev1.Container{{Name: "worker", Image: "dask"}}
		c.Create(t, group)
		c.Create(t, example("x", ""))
		for _, items := range [][]string{{"a", "b", "c"}, {"a"}, {"a", "b"}} {
			c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"items": items}})
			time.Sleep(time.Minute)
			if got := c.List(t, deployments, "default"); len(got) != len(items) || got[0].GetOwnerReferences()[0].Name != "x" {
				t.Errorf("%d workers, want %d", len(got), len(items))
			}
		}
	})
}
