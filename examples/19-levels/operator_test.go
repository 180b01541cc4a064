package main

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/gopftest"
)

const (
	shops       = "gopf.dev/v1/shops"
	branches    = "gopf.dev/v1/branches"
	deployments = "apps/v1/deployments"
)

func ready(o *unstructured.Unstructured) bool {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if m := c.(map[string]any); m["type"] == "Ready" {
			return m["status"] == "True"
		}
	}
	return false
}

func TestReadinessGoesUpAndChangesGoDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, deployments)
		c.Load(t, "deploy/crd.yaml")
		gopftest.Start(t, newOperator(), c)
		shop := &Shop{TypeMeta: metav1.TypeMeta{APIVersion: "gopf.dev/v1", Kind: "Shop"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "books"}}
		shop.Spec.Branches, shop.Spec.Image = []string{"berlin", "paris"}, "v1"
		c.Create(t, shop)
		image := func(name string) string {
			time.Sleep(time.Second)
			return gopftest.Get[*appsv1.Deployment](t, c, deployments, "default", name).Spec.Template.Spec.Containers[0].Image
		}
		run := func(name string) { // does what the Deployment controller does
			t.Helper()
			image(name)
			generation := c.Get(t, deployments, "default", name).GetGeneration()
			c.PatchStatus(t, deployments, "default", name, map[string]any{"status": map[string]any{
				"observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
			}})
			time.Sleep(time.Second)
		}
		run("books-berlin")
		if !ready(c.Get(t, branches, "default", "books-berlin")) || ready(c.Get(t, shops, "default", "books")) {
			t.Error("one of two branches is ready, but the conditions differ from that")
		}
		run("books-paris")
		if !ready(c.Get(t, shops, "default", "books")) {
			t.Error("all branches are ready, but the shop is not")
		}

		c.Patch(t, shops, "default", "books", map[string]any{"spec": map[string]any{"image": "v2"}})
		if first, second := image("books-berlin"), image("books-paris"); first != "v2" || second != "v1" {
			t.Errorf("the branches have the images %s and %s, want one change at a time", first, second)
		}
		run("books-berlin")
		if got := image("books-paris"); got != "v2" {
			t.Errorf("after the first branch is ready, the second has the image %s", got)
		}

		c.Delete(t, deployments, "default", "books-paris")
		image("books-paris") // it is back
		c.Patch(t, shops, "default", "books", map[string]any{"spec": map[string]any{"branches": []any{"berlin"}}})
		c.WaitGone(t, branches, "default", "books-paris")
		c.WaitGone(t, deployments, "default", "books-paris")
		c.Delete(t, shops, "default", "books")
		c.WaitGone(t, deployments, "default", "books-berlin")
	})
}
