package engine_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// Objects as operators in production have them: of a group of their own, with a finalizer
// that the operator has chosen itself, and state of Kopf in annotations.
func TestFormerFinalizersOfPortedOperatorsCount(t *testing.T) {
	const clusters, chosen = "kubernetes.dask.org/v1/daskclusters", "kubernetes.dask.org/operator"
	cluster := func(name string, finalizers ...string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kubernetes.dask.org/v1", "kind": "DaskCluster",
			"metadata": map[string]any{"name": name, "namespace": "default", "annotations": map[string]any{
				annotated: `{"spec":{"field":"a","worker":{"replicas":3}}}` + "\n",
			}},
			"spec": map[string]any{"field": "a", "worker": map[string]any{"replicas": int64(3)}},
		}}
		o.SetFinalizers(finalizers)
		return o
	}
	for name, test := range map[string]struct {
		operator func() *gopf.Operator
		wanted   string // the finalizer after the next write
	}{
		"by the settings": {func() *gopf.Operator {
			op := gopf.New()
			op.Settings.Persistence.Finalizer = "dask.org/finalizer"
			op.Settings.Persistence.FormerFinalizers = []string{chosen}
			return op
		}, "dask.org/finalizer"},
		"by the identity": {func() *gopf.Operator {
			op := gopf.New(gopf.Identity("dask.example.com", gopf.FormerlyNamed("")))
			op.Settings.Persistence.FormerFinalizers = append(op.Settings.Persistence.FormerFinalizers, chosen)
			return op
		}, "dask.example.com/finalizer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := gopftest.NewCluster(t, clusters)
				c.Create(t, cluster("kept", "foregroundDeletion", chosen))
				c.Create(t, cluster("changed", chosen))
				c.Create(t, cluster("deleted", chosen, "example.com/other"))
				c.Delete(t, clusters, "default", "deleted")
				var diary calls
				op := test.operator()
				x := gopf.For[*Example](op, clusters)
				x.OnCreate("create", diary.handler("create"))
				x.OnUpdate("update", diary.handler("update"))
				x.OnDelete("delete", diary.handler("delete"))
				before := len(c.Writes("daskclusters"))
				gopftest.Start(t, op, c)
				time.Sleep(time.Minute)
				c.Patch(t, clusters, "default", "changed", `{"spec":{"field":"b"}}`)
				time.Sleep(time.Minute)
				if got, want := diary.all(), []string{"delete delete a", "update update b"}; !slices.Equal(got, want) {
					t.Errorf("calls %q, want %q", got, want)
				}
				for object, want := range map[string][]string{
					"kept": {"foregroundDeletion", chosen}, "changed": {test.wanted}, "deleted": {"example.com/other"},
				} {
					if got := c.Get(t, clusters, "default", object).GetFinalizers(); !slices.Equal(got, want) {
						t.Errorf("%s: the finalizers are %q, want %q", object, got, want)
					}
				}
				if n := len(c.Writes("daskclusters")) - before; n > 4 { // two of them are the test's
					t.Errorf("%d writes", n)
				}
				c.Delete(t, clusters, "default", "changed")
				time.Sleep(time.Minute)
				if _, there := c.Lookup(t, clusters, "default", "changed"); there || diary.all()[2] != "delete delete b" {
					t.Errorf("the object exists: %v, calls %q", there, diary.all())
				}
			})
		})
	}
}
