package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// A large immutable child with AllowRecreate is created again.
func TestALargeImmutableChildIsCreatedAgain(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "large": 800 << 10} {
		t.Run(name, func(t *testing.T) {
			owners(t, func(t *testing.T, c *gopftest.Cluster) {
				op := owning()
				gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
					m := childMap("one", r.Object.Spec.Field)
					yes := true
					m.Immutable = &yes
					m.Data["text"] = strings.Repeat("x", size)
					gopf.Want(r, m, gopf.AllowRecreate())
					return nil
				}, gopf.Owns[*corev1.ConfigMap]())
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				c.Create(t, withItems("o", "a"))
				settle()
				first, _ := c.Lookup(t, configMaps, "default", "one")
				refuseChangesOf(c, first)
				changeField(t, c, "o", "b")
				time.Sleep(time.Hour)
				settle()
				o, ok := c.Lookup(t, configMaps, "default", "one")
				if !ok {
					t.Fatal("the child does not exist after an hour")
				}
				if o.Object["data"].(map[string]any)["key"] != "b" {
					t.Errorf("the child was not changed: key = %v", o.Object["data"].(map[string]any)["key"])
				}
			})
		})
	}
}

// After a restore to another cluster, objects have other uids. A child in another namespace
// names its former owner in the annotation.
func TestAFormerSelfIsRecognizedForLargeChildren(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "large": 100 << 10} {
		t.Run(name, func(t *testing.T) {
			owners(t, func(t *testing.T, c *gopftest.Cluster) {
				c.CreateNamespace(t, "shared")
				declare := func() *gopf.Operator {
					op := owning()
					gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
						m := childMap("one", r.Object.Spec.Field)
						m.Namespace = "shared"
						m.Data["text"] = strings.Repeat("x", size)
						gopf.Want(r, m, gopf.AdoptExisting())
						return nil
					}, gopf.Owns[*corev1.ConfigMap](gopf.InOtherNamespaces()))
					return op
				}
				stop := gopftest.Start(t, declare(), c, gopf.Log(quiet()))
				c.Create(t, withItems("o", "a"))
				settle()
				stop()
				c.Patch(t, resource, "default", "o", map[string]any{"metadata": map[string]any{"finalizers": nil}})
				c.Delete(t, resource, "default", "o")
				c.Create(t, withItems("o", "b"))
				gopftest.Start(t, declare(), c, gopf.Log(quiet()))
				time.Sleep(time.Hour)
				o := c.Get(t, configMaps, "shared", "one")
				if got := o.Object["data"].(map[string]any)["key"]; got != "b" {
					status, _ := c.Get(t, resource, "default", "o").Object["status"].(map[string]any)
					t.Errorf("the child has %v; the status is %v", got, status)
				}
			})
		})
	}
}

// A child with a large status that says that it is ready.
func TestAChildWithALargeStatusIsReady(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "large": 300 << 10} {
		t.Run(name, func(t *testing.T) {
			owners(t, func(t *testing.T, c *gopftest.Cluster) {
				op := owning()
				gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
					if len(r.Object.Spec.Items) == 0 {
						return nil
					}
					child := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": "inner"}, "spec": map[string]any{"field": "x"}}}
					first := gopf.Want(r, child)
					gopf.Want(r, childMap("after-"+r.Object.Spec.Field, "x"), gopf.DependsOn(first))
					return nil
				}, gopf.Owns[*corev1.ConfigMap](), gopf.Owns[*unstructured.Unstructured](gopf.OfResource(resource)), gopf.NoConditions())
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				c.Create(t, withItems("o", "a", "one"))
				settle()
				c.PatchStatus(t, resource, "default", "inner", map[string]any{"status": map[string]any{
					"text": strings.Repeat("x", size), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
				}})
				settle()
				changeField(t, c, "o", "b")
				time.Sleep(time.Hour)
				status, _ := c.Get(t, resource, "default", "o").Object["status"].(map[string]any)
				_, ok := c.Lookup(t, configMaps, "default", "after-b")
				if !ok {
					t.Errorf("the child that depends on it does not exist; %v", status)
				}
			})
		})
	}
}

// One object declares many large children. No other object needs memory.
func TestManyLargeChildrenOfOneObjectAreCreated(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(230 << 20)) // 90 % of 256 MiB
	for name, n := range map[string]int{"20": 20, "40": 40} {
		t.Run(name, func(t *testing.T) {
			owners(t, func(t *testing.T, c *gopftest.Cluster) {
				op := owning()
				gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
					for i := range n {
						m := childMap(fmt.Sprint("child-", i), r.Object.Spec.Field)
						m.Data["text"] = strings.Repeat("x", 500<<10)
						gopf.Want(r, m)
					}
					return nil
				}, gopf.Owns[*corev1.ConfigMap]())
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				c.Create(t, withItems("o", "a"))
				time.Sleep(time.Hour)
				if got := len(c.List(t, configMaps, "default")); got < n {
					conditions, _, _ := unstructured.NestedSlice(c.Get(t, resource, "default", "o").Object, "status", "conditions")
					t.Errorf("%d of %d children exist after an hour: %.600v", got, n, conditions)
				}
			})
		})
	}
}

// Many children repeat one long text of the object. Those that get no memory are not encoded.
func TestChildrenWithoutMemoryAreNotEncoded(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(230 << 20)) // 90 % of 256 MiB
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		var encoded uint64
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			text := strings.Repeat("x", 500<<10)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for i := range 500 {
				m := childMap(fmt.Sprint("child-", i), r.Object.Spec.Field)
				m.Data["text"] = text
				gopf.Want(r, m)
			}
			runtime.ReadMemStats(&after)
			encoded = max(encoded, after.TotalAlloc-before.TotalAlloc)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, withItems("o", "a"))
		settle()
		if encoded == 0 || encoded > 230<<20 {
			t.Errorf("500 children of 500 KiB allocated %d MiB, want at most 230", encoded>>20)
		}
		conditions, _, _ := unstructured.NestedSlice(c.Get(t, resource, "default", "o").Object, "status", "conditions")
		if got := fmt.Sprint(conditions); !strings.Contains(got, "declare fewer or smaller ones") {
			t.Errorf("the conditions do not say what to do: %.600s", got)
		}
	})
}

// Children of a group are changed one after the other, even if their status is large.
func TestARollingUpdateOfChildrenWithALargeStatus(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "large": 300 << 10} {
		t.Run(name, func(t *testing.T) {
			owners(t, func(t *testing.T, c *gopftest.Cluster) {
				op := owning()
				gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
					for _, item := range r.Object.Spec.Items {
						child := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": item}, "spec": map[string]any{"field": r.Object.Spec.Field}}}
						gopf.Want(r, child, gopf.RollingUpdate("shards", 1))
					}
					return nil
				}, gopf.Owns[*unstructured.Unstructured](gopf.OfResource(resource)), gopf.NoConditions())
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				c.Create(t, withItems("o", "a", "x", "y", "z"))
				settle()
				for _, item := range []string{"x", "y", "z"} {
					c.PatchStatus(t, resource, "default", item, map[string]any{"status": map[string]any{
						"text": strings.Repeat("x", size), "observedGeneration": 1, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
					}})
				}
				settle()
				changeField(t, c, "o", "b") // a changed child is not ready: its observed generation is old
				time.Sleep(time.Minute)
				changed := 0
				for _, item := range []string{"x", "y", "z"} {
					if v, _, _ := unstructured.NestedString(c.Get(t, resource, "default", item).Object, "spec", "field"); v == "b" {
						changed++
					}
				}
				if changed != 1 {
					t.Errorf("%d of 3 children were changed, want 1", changed)
				}
			})
		})
	}
}

// The write to a large immutable child must not block those to other large objects.
func TestALargeImmutableChildBlocksNoOthers(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			m := childMap(r.Object.Name, r.Object.Spec.Field)
			m.Data["text"] = strings.Repeat("x", 800<<10)
			gopf.Want(r, m, gopf.AllowRecreate())
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, withItems("one", "a"))
		settle()
		first, _ := c.Lookup(t, configMaps, "default", "one")
		refuseChangesOf(c, first)
		changeField(t, c, "one", "b")
		settle()
		c.Create(t, withItems("two", "a"))
		time.Sleep(time.Hour)
		if _, ok := c.Lookup(t, configMaps, "default", "two"); !ok {
			t.Error("the child of another object does not exist after an hour")
		}
	})
}

// Nothing happens while nothing changes, whatever the size of the children.
func TestLargeChildrenSettle(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		calls := 0
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			if len(r.Object.Spec.Items) == 0 {
				return nil
			}
			calls++
			m := childMap("one", "x")
			m.Data["text"] = strings.Repeat("x", 100<<10)
			gopf.Want(r, m)
			s := &corev1.Secret{Data: map[string][]byte{"k": []byte(strings.Repeat("y", 700<<10))}}
			s.Name = "two"
			gopf.Want(r, s)
			gopf.Want(r, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": "inner"}, "spec": map[string]any{"field": strings.Repeat("z", 300<<10)}}})
			return nil
		}, gopf.Owns[*corev1.ConfigMap](), gopf.Owns[*corev1.Secret](), gopf.Owns[*unstructured.Unstructured](gopf.OfResource(resource)))
		gopf.For[*Example](op, resource).OnCreate("note", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.Patch.Set("status.note", "x")
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, withItems("o", "a", "one"))
		time.Sleep(time.Minute)
		before, writes := calls, len(c.Writes())
		time.Sleep(24 * time.Hour)
		if calls != before || len(c.Writes()) != writes || before > 6 {
			t.Errorf("%d calls, then %d; %d writes, then %d", before, calls, writes, len(c.Writes()))
		}
	})
}

func TestAnOutageDuringTheReadOfALargeOwner(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			gopf.Want(r, childMap("one", r.Object.Spec.Field))
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		o := withItems("o", "a", "one")
		_ = unstructured.SetNestedField(o.Object, strings.Repeat("n", 600<<10), "spec", "noise")
		c.Create(t, o)
		settle()
		f := c.Fault(gopftest.Requests("get", "kopfexamples"), gopftest.Fail(500))
		c.Delete(t, configMaps, "default", "one")
		time.Sleep(10 * time.Minute)
		struck := f.Struck()
		f.Stop()
		time.Sleep(2 * time.Minute)
		if _, ok := c.Lookup(t, configMaps, "default", "one"); !ok || struck == 0 {
			t.Errorf("the child exists: %t; %d failures", ok, struck)
		}
	})
}

// Objects of 5 KB, such as pods, do not count for the memory of daemons.
func TestOrdinaryObjectsHaveTheirDaemons(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(230 << 20)) // 90 % of 256 MiB
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, resource)
		op := owning()
		var running atomic.Int32
		gopf.For[*Example](op, resource).Daemon("watch", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
			running.Add(1)
			<-d.Stopping()
			return nil
		}, gopf.Optional())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		parts := []any{}
		for i := range 100 { // 5 KB
			parts = append(parts, map[string]any{"name": fmt.Sprint("part-", i), "value": "some value", "on": true})
		}
		const n = 1000
		for i := range n {
			o := example(fmt.Sprint("o-", i), "a")
			_ = unstructured.SetNestedSlice(o.Object, parts, "spec", "parts")
			c.Create(t, o)
		}
		time.Sleep(time.Hour)
		if got := running.Load(); got != n {
			t.Errorf("%d of %d daemons are running after an hour", got, n)
		}
	})
}

// refuseChangesOf lets the API server refuse changes of an immutable ConfigMap. The in-memory
// cluster does not check the field immutable.
func refuseChangesOf(c *gopftest.Cluster, o *unstructured.Unstructured) {
	c.Fault(gopftest.Requests("patch", "configmaps").Where(func(r gopftest.Request) bool {
		return strings.Contains(string(r.Body), string(o.GetUID()))
	}), gopftest.FailWith(apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, o.GetName(), field.ErrorList{
		field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"),
	})))
}
