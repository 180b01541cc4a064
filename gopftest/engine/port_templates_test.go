package engine_test

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/client/manifest"
	"gopf.dev/gopf/gopftest"
)

// createServers has the shape of the creation of a MySQL cluster, removeServers that of its deletion.
func createServers(ctx context.Context, ch *gopf.Change[*Example]) error {
	if _, err := client.Get[*corev1.Secret](ctx, ch.API, "root"); err != nil {
		return err // a missing Secret is waited for
	}
	children, err := manifest.Render(os.DirFS("testdata"), "servers.yaml", ch.Object)
	if err != nil {
		return err
	}
	for _, child := range children {
		if _, err := client.CreateIfAbsent(ctx, ch.API, child, client.OwnedBy(ch.Object)); err != nil {
			return err
		}
	}
	set, err := client.Get[*appsv1.StatefulSet](ctx, ch.API, ch.Object.Name)
	if err == nil && int(set.Status.ReadyReplicas) < len(ch.Object.Spec.Items) {
		err = gopf.Wait(10*time.Second, "%d servers are ready", set.Status.ReadyReplicas)
	}
	ch.SetCondition("Ready", err == nil, "Servers", "")
	return err
}

func removeServers(ctx context.Context, ch *gopf.Change[*Example]) error {
	set, err := client.Edit(ctx, ch.API, ch.Object.Name, func(set *appsv1.StatefulSet) error { set.Spec.Replicas = new(int32); return nil })
	switch {
	case err == nil && set.Status.Replicas > 0:
		return gopf.Wait(10*time.Second, "%d servers run", set.Status.Replicas)
	case apierrors.IsNotFound(err):
		return nil
	}
	return err
}

func TestChildrenFromTemplatesNeedNoHelpers(t *testing.T) {
	const sets, maps = "apps/v1/statefulsets", "v1/configmaps"
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, resource, sets, maps, "v1/secrets")
		op := gopf.New()
		gopf.For[*Example](op, resource).On(gopf.Create|gopf.Resume, "create", createServers)
		gopf.For[*Example](op, resource).OnDelete("remove", removeServers)
		gopftest.Start(t, op, c)
		c.Load(t, "testdata/cluster.yaml")
		time.Sleep(10 * time.Second)
		c.Load(t, "testdata/secret.yaml")
		time.Sleep(time.Minute)
		conf, waiting := gopftest.Get[*corev1.ConfigMap](t, c, maps, "default", "x-conf"), readyCondition(get(t, c, "x"))
		if conf.Data["my.cnf"] != "a: [b" || conf.OwnerReferences[0].Name != "x" || waiting["status"] != "False" {
			t.Errorf("got %v, %v", conf, waiting)
		}
		c.PatchStatus(t, sets, "default", "x", `{"status":{"replicas":2,"readyReplicas":2}}`)
		time.Sleep(time.Minute)
		c.Delete(t, resource, "default", "x")
		time.Sleep(time.Minute)
		set, ready := gopftest.Get[*appsv1.StatefulSet](t, c, sets, "default", "x"), readyCondition(get(t, c, "x"))
		if *set.Spec.Replicas != 0 || ready["status"] != "True" {
			t.Errorf("%d servers, the condition is %v", *set.Spec.Replicas, ready)
		}
		c.PatchStatus(t, sets, "default", "x", `{"status":{"replicas":0,"readyReplicas":0}}`)
		c.WaitGone(t, resource, "default", "x")
	})
}
