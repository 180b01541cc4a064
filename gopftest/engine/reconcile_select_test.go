package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// shardOwner declares children for the objects of one shard. The second child depends on
// the first, so objects have a finalizer. Its data has the name of the shard.
func shardOwner(shard string, handOver bool) *gopf.Operator {
	op := owning()
	x := gopf.For[*Example](op, resource).Select("shard=" + shard)
	if handOver {
		x = x.HandOver()
	}
	x.Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
		one := gopf.Want(r, childMap(r.Object.Name+"-one", r.Object.Spec.Field))
		gopf.Want(r, childMap(r.Object.Name+"-two", shard), gopf.DependsOn(one))
		return nil
	}, gopf.Owns[*corev1.ConfigMap]())
	return op
}

func childValues(t *testing.T, c *gopftest.Cluster) (all []string) {
	t.Helper()
	for _, o := range c.List(t, configMaps, "default") {
		v, _, _ := unstructured.NestedString(o.Object, "data", "key")
		all = append(all, o.GetName()+" "+v)
	}
	slices.Sort(all)
	return all
}

func TestReconcileServesOnlySelectedObjects(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		gopftest.Start(t, shardOwner("1", false), c, gopf.Log(quiet()))
		c.Create(t, sharded("x", "1"))
		c.Create(t, sharded("y", "2"))
		pause()
		if got, want := childValues(t, c), []string{"x-one a", "x-two 1"}; !slices.Equal(got, want) {
			t.Fatalf("there are %q, want %q", got, want)
		}
		setShard(t, c, "x", "2")
		pause()
		if f := get(t, c, "x").GetFinalizers(); len(f) > 0 {
			t.Errorf("an object that is no longer selected has the finalizers %q", f)
		}
		c.Delete(t, configMaps, "default", "x-one")
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		pause()
		if got, want := childValues(t, c), []string{"x-two 1"}; !slices.Equal(got, want) {
			t.Errorf("after it left the selection, there are %q, want %q", got, want)
		}
		setShard(t, c, "x", "1")
		pause()
		if got, want := childValues(t, c), []string{"x-one b", "x-two 1"}; !slices.Equal(got, want) {
			t.Errorf("after it came back, there are %q, want %q", got, want)
		}
	})
}

func TestHandOverLeavesTheChildrenToTheNextOwner(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		gopftest.Start(t, shardOwner("1", true), c, gopf.Log(quiet()))
		gopftest.Start(t, shardOwner("2", true), c, gopf.Log(quiet()))
		c.Create(t, sharded("x", "1"))
		pause()
		one := c.Get(t, configMaps, "default", "x-one")
		seen := 0
		changes(c, &seen)
		setShard(t, c, "x", "2")
		pause()
		if got, want := childValues(t, c), []string{"x-one a", "x-two 2"}; !slices.Equal(got, want) {
			t.Errorf("after the move, there are %q, want %q", got, want)
		}
		if now := c.Get(t, configMaps, "default", "x-one"); now.GetResourceVersion() != one.GetResourceVersion() {
			t.Error("a child with the same content was written")
		}
		if f := get(t, c, "x").GetFinalizers(); len(f) != 1 {
			t.Errorf("finalizers %q", f)
		}
		if writes := changes(c, &seen); slices.Contains(writes, "patch configmaps/x-one") || slices.Contains(writes, "delete configmaps/x-two") {
			t.Errorf("the move took %q", writes)
		}
		c.Delete(t, configMaps, "default", "x-two") // only the present owner repairs it
		pause()
		if got, want := childValues(t, c), []string{"x-one a", "x-two 2"}; !slices.Equal(got, want) {
			t.Errorf("after a repair, there are %q, want %q", got, want)
		}
		changes(c, &seen)
		c.Delete(t, resource, "default", "x")
		time.Sleep(time.Minute)
		if got := childValues(t, c); len(got) > 0 || exists(t, c, "x") {
			t.Errorf("after the deletion, there are %q", got)
		}
		deleted := slices.DeleteFunc(changes(c, &seen), func(w string) bool { return w[:6] != "delete" })
		if want := []string{"delete configmaps/x-two", "delete configmaps/x-one"}; !slices.Equal(deleted, want) {
			t.Errorf("the deletions were %q, want %q", deleted, want)
		}
	})
}
