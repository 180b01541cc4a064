package engine_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/internal/children"
)

func TestChildrenAreNeitherLostNorCreatedTwiceIfTheOperatorCrashes(t *testing.T) {
	gopftest.CrashAtEveryWrite(t, gopftest.Life{
		Cluster: func(t testing.TB) *gopftest.Cluster {
			c := gopftest.NewCluster(t, resource, configMaps)
			c.CreateNamespace(t, "other")
			return c
		},
		Operator: func() *gopf.Operator {
			op := owning()
			gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
				one := gopf.Want(r, childMap("one", r.Object.Spec.Field))
				for _, item := range r.Object.Spec.Items {
					gopf.Want(r, childMap(item, r.Object.Spec.Field), gopf.DependsOn(one))
				}
				far := childMap("far", "a")
				far.Namespace = "other"
				gopf.Want(r, far)
				return nil
			}, gopf.Owns[*corev1.ConfigMap](gopf.InOtherNamespaces()))
			return op
		},
		Live: func(t testing.TB, c *gopftest.Cluster) {
			names := func() (all []string) {
				for _, namespace := range []string{"default", "other"} {
					for _, o := range c.List(t, configMaps, namespace) {
						v, _, _ := unstructured.NestedString(o.Object, "data", "key")
						all = append(all, o.GetName()+" "+v)
					}
				}
				slices.Sort(all)
				return all
			}
			check := func(when string, want ...string) {
				time.Sleep(20 * time.Minute)
				if got := names(); !slices.Equal(got, want) {
					t.Errorf("%s: there are %q, want %q", when, got, want)
				}
			}
			c.Create(t, withItems("x", "a", "two", "three"))
			check("after the creation", "far a", "one a", "three a", "two a")
			first := c.Get(t, configMaps, "default", "one").GetUID()
			c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b", "items": []any{"two"}}})
			check("after a change", "far a", "one b", "two b")
			if c.Get(t, configMaps, "default", "one").GetUID() != first {
				t.Error("a child was created twice")
			}
			c.Delete(t, resource, "default", "x")
			check("after the deletion")
			if _, found := c.Lookup(t, resource, "default", "x"); found {
				t.Error("the object still exists")
			}
		},
	})
}

func TestForgedInventoryDeletesNoForeignObject(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		parent := c.Create(t, withItems("x", "a", "one"))
		c.Create(t, withItems("y", "a", "neighbor"))
		settle()
		foreign := childMap("foreign", "b")
		foreign.TypeMeta, foreign.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, "default"
		c.Create(t, foreign)
		const key = "examples.kopf.dev/gopf.children.children"
		if c.Get(t, resource, "default", "x").GetAnnotations()[key] == "" {
			t.Fatalf("there is no inventory in %v", c.Get(t, resource, "default", "x").GetAnnotations())
		}
		forged := &children.Inventory{Owner: string(parent.GetUID())}
		for _, name := range []string{"foreign", "neighbor"} { // an object of users, and a child of another object
			forged.Entries = append(forged.Entries, children.Entry{
				Key: children.Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name},
				UID: children.Short(string(c.Get(t, configMaps, "default", name).GetUID())),
			})
		}
		text, err := forged.Encode()
		if err != nil {
			t.Fatal(err)
		}
		record := fmt.Sprintf(`{"started":"2000-01-01T00:00:00.000000","purpose":"reconcile","retries":0,"success":false,"failure":false,"message":%q}`, text)
		c.Patch(t, resource, "default", "x", map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{key: record}}, "spec": map[string]any{"field": "c"},
		})
		settle()
		for _, name := range []string{"foreign", "neighbor", "one"} {
			if _, found := c.Lookup(t, configMaps, "default", name); !found {
				t.Errorf("%s was deleted", name)
			}
		}
	})
}

func TestHandlersThatCannotBeCalledCauseNoTurns(t *testing.T) {
	for name, edit := range map[string]func(t *testing.T, c *gopftest.Cluster){
		"the object is being deleted": func(t *testing.T, c *gopftest.Cluster) {
			c.Patch(t, resource, "default", "x", map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/theirs"}}})
			c.Delete(t, resource, "default", "x")
		},
		"the object does not match": func(t *testing.T, c *gopftest.Cluster) {
			c.Patch(t, resource, "default", "x", map[string]any{"metadata": map[string]any{"labels": map[string]any{"off": "yes"}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			owners(t, func(t *testing.T, c *gopftest.Cluster) {
				op := owning()
				var turns, calls atomic.Int64
				gopf.For[*Example](op, resource).When(func(s *gopf.Candidate[*Example]) bool {
					if turns.Add(1) > 1000 {
						time.Sleep(time.Minute) // otherwise, the time of the test would stand still
					}
					return s.Object.Labels["off"] == ""
				}).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
					calls.Add(1)
					reconciled(r)
					return nil
				}, gopf.Owns[*corev1.ConfigMap](), gopf.Every(time.Minute))
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				c.Create(t, withItems("x", "a", "one"))
				settle()
				edit(t, c)
				settle()
				turns.Store(0)
				calls.Store(0)
				time.Sleep(time.Hour)
				if turns.Load() > 500 || calls.Load() > 0 {
					t.Errorf("%d turns and %d calls in an hour", turns.Load(), calls.Load())
				}
			})
		})
	}
}

// The kind of a child may be uninstalled, its version may no longer be served, and a client
// can write any kind into an inventory.
func TestMissingKindsInAnInventoryDoNotBlockTheDeletion(t *testing.T) {
	for name, test := range map[string]struct{ apiVersion, kind string }{
		"a kind that is gone":    {"example.com/v1", "Gone"},
		"a version that is gone": {"v1beta1", "ConfigMap"},
	} {
		t.Run(name, func(t *testing.T) {
			owners(t, func(t *testing.T, c *gopftest.Cluster) {
				start := func() (stop func()) {
					op := owning()
					gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
						if len(r.Object.Spec.Items) == 0 {
							return gopf.RetryAfter(time.Hour, errors.New("not now"))
						}
						far := childMap("far", "a")
						far.Namespace = "other"
						gopf.Want(r, far)
						return nil
					}, gopf.Owns[*corev1.ConfigMap](gopf.InOtherNamespaces()))
					return gopftest.Start(t, op, c, gopf.Log(quiet()))
				}
				c.CreateNamespace(t, "other")
				stop := start()
				parent := c.Create(t, withItems("x", "a", "one"))
				settle()
				stop()
				forged := &children.Inventory{Owner: string(parent.GetUID()), Entries: []children.Entry{{
					Key: children.Key{APIVersion: test.apiVersion, Kind: test.kind, Namespace: "other", Name: "far"}, Outside: true,
				}}}
				text, err := forged.Encode()
				if err != nil {
					t.Fatal(err)
				}
				record := fmt.Sprintf(`{"started":"2000-01-01T00:00:00.000000","purpose":"reconcile","retries":0,"success":false,"failure":false,"message":%q}`, text)
				c.Patch(t, resource, "default", "x", map[string]any{
					"metadata": map[string]any{"annotations": map[string]any{"examples.kopf.dev/gopf.children.children": record}}, "spec": map[string]any{"items": []any{}},
				})
				start()
				settle()
				c.Delete(t, resource, "default", "x")
				time.Sleep(time.Hour)
				if _, found := c.Lookup(t, resource, "default", "x"); found {
					t.Error("the deletion waits for a child that cannot exist")
				}
				if _, found := c.Lookup(t, configMaps, "other", "far"); found {
					t.Error("the child was not deleted")
				}
			})
		})
	}
}

// A tenant can name any owner in its own objects.
func TestChildrenInAnotherNamespaceThanTheirOwnerAreNotItsChildren(t *testing.T) {
	for _, test := range []struct {
		namespace string
		counts    bool
	}{{"default", true}, {"tenant", false}} {
		t.Run(test.namespace, func(t *testing.T) {
			owners(t, func(t *testing.T, c *gopftest.Cluster) {
				c.CreateNamespace(t, "tenant")
				op, calls := owning(), 0
				gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
					calls++
					reconciled(r)
					return nil
				}, gopf.Owns[*corev1.ConfigMap]())
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				parent := c.Create(t, withItems("x", "a", "one"))
				settle()
				before, isController := calls, true
				forged := childMap("forged", "b")
				forged.TypeMeta, forged.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, test.namespace
				forged.Labels, forged.Finalizers = map[string]string{"gopf.dev/children": "examples.kopf.dev"}, []string{"example.com/forged"}
				forged.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "examples.kopf.dev", Operation: metav1.ManagedFieldsOperationApply}}
				forged.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kopf.dev/v1", Kind: "KopfExample", Name: "x", UID: parent.GetUID(), Controller: &isController}}
				c.Seed(t, forged)
				settle()
				if woken := calls > before; woken != test.counts {
					t.Errorf("the handler was called: %v", woken)
				}
				c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "c"}})
				settle()
				if deleted := c.Get(t, configMaps, test.namespace, "forged").GetDeletionTimestamp() != nil; deleted != test.counts {
					t.Errorf("the forged child was deleted: %v", deleted)
				}
				record := c.Get(t, resource, "default", "x").GetAnnotations()["examples.kopf.dev/gopf.children.children"]
				if listed := strings.Contains(record, "forged"); listed != test.counts {
					t.Errorf("the inventory is %s", record)
				}
			})
		})
	}
}

// A tenant can put all marks of children on its own objects, and use the field manager of
// the operator.
func TestForgedChildrenInOtherNamespacesDoNotBlockTheirOwner(t *testing.T) {
	for name, opts := range map[string][]gopf.OwnsOption{"no children there": nil, "children there": {gopf.InOtherNamespaces()}} {
		t.Run(name, func(t *testing.T) {
			owners(t, func(t *testing.T, c *gopftest.Cluster) {
				c.CreateNamespace(t, "tenant")
				op := owning()
				gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
					reconciled(r)
					return nil
				}, gopf.Owns[*corev1.ConfigMap](opts...))
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				parent := c.Create(t, withItems("x", "a", "one"))
				settle()
				for i := range 3 {
					forged := childMap(fmt.Sprint("forged-", i), "b")
					forged.TypeMeta, forged.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, "tenant"
					forged.Labels, forged.Finalizers = map[string]string{"gopf.dev/children": "examples.kopf.dev"}, []string{"example.com/forged"}
					forged.Annotations = map[string]string{"gopf.dev/owner": "kopf.dev/v1|KopfExample|default|x|" + string(parent.GetUID())}
					forged.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "examples.kopf.dev", Operation: metav1.ManagedFieldsOperationApply}}
					c.Seed(t, forged)
				}
				settle()
				c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "c"}})
				settle()
				now := c.Get(t, resource, "default", "x")
				if record := now.GetAnnotations()["examples.kopf.dev/gopf.children.children"]; strings.Contains(record, "forged") {
					t.Errorf("the inventory is %s", record)
				}
				if status := fmt.Sprint(now.Object["status"]); !strings.Contains(status, "ChildrenReady") {
					t.Errorf("the status is %s", status)
				}
				c.Delete(t, resource, "default", "x")
				time.Sleep(time.Hour)
				if _, found := c.Lookup(t, resource, "default", "x"); found {
					t.Error("the deletion of the owner waits for objects of another tenant")
				}
			})
		})
	}
}

// A policy of the cluster may let tenants protect their own objects from deletion.
func TestForgedChildrenThatCannotBeDeletedDoNotBlockTheirOwner(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		c.CreateNamespace(t, "tenant")
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		parent := c.Create(t, withItems("x", "a", "one"))
		settle()
		forged := childMap("forged", "b")
		forged.TypeMeta, forged.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, "tenant"
		forged.Labels = map[string]string{"gopf.dev/children": "examples.kopf.dev"}
		forged.Annotations = map[string]string{"gopf.dev/owner": "kopf.dev/v1|KopfExample|default|x|" + string(parent.GetUID())}
		forged.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "examples.kopf.dev", Operation: metav1.ManagedFieldsOperationApply}}
		c.Seed(t, forged)
		refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "forged", errors.New("it is protected"))
		c.Fault(gopftest.Requests("delete", "configmaps").Where(func(r gopftest.Request) bool { return r.Name == "forged" }), gopftest.FailWith(refusal))
		settle()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "c"}})
		settle()
		if status := fmt.Sprint(c.Get(t, resource, "default", "x").Object["status"]); !strings.Contains(status, "ChildrenReady") {
			t.Errorf("the status is %s", status)
		}
		c.Delete(t, resource, "default", "x")
		time.Sleep(time.Hour)
		if _, found := c.Lookup(t, resource, "default", "x"); found {
			t.Error("the deletion of the owner waits for an object of another tenant")
		}
	})
}

// The number of children may come from the object.
func TestTooManyChildrenAreNotCreated(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op, calls := owning(), 0
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			calls++
			for i := range 200_000 {
				gopf.Want(r, childMap(fmt.Sprint("child-", i), "a"))
			}
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, withItems("x", "a"))
		time.Sleep(time.Hour)
		if got := len(c.List(t, configMaps, "default")); got != 0 || calls != 1 {
			t.Errorf("%d children were created in %d calls", got, calls)
		}
	})
}

// A client that may edit a child can change it and write the former managedFields back. Nothing
// but the content tells then.
func TestAHiddenChangeOfAChildIsRepaired(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		operator := func() *gopf.Operator {
			op := owning()
			gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
				gopf.Want(r, childMap("one", r.Object.Spec.Field))
				return nil
			}, gopf.Owns[*corev1.ConfigMap]())
			return op
		}
		stop := gopftest.Start(t, operator(), c, gopf.Log(quiet()))
		c.Create(t, withItems("o", "a"))
		settle()
		stop()
		former := c.Get(t, configMaps, "default", "one").Object["metadata"].(map[string]any)["managedFields"]
		c.Patch(t, configMaps, "default", "one", map[string]any{"data": map[string]any{"key": "hidden"}})
		c.Patch(t, configMaps, "default", "one", map[string]any{"metadata": map[string]any{"managedFields": former}})
		hidden := c.Get(t, configMaps, "default", "one").Object
		if got := hidden["metadata"].(map[string]any)["managedFields"]; !reflect.DeepEqual(got, former) || hidden["data"].(map[string]any)["key"] != "hidden" {
			t.Fatalf("the change is not hidden: %v", got)
		}
		gopftest.Start(t, operator(), c, gopf.Log(quiet()))
		settle()
		if got := c.Get(t, configMaps, "default", "one").Object["data"].(map[string]any)["key"]; got != "a" {
			t.Errorf("the child has %q, want %q", got, "a")
		}
		writes := len(c.Writes())
		c.Patch(t, configMaps, "default", "one", map[string]any{"data": map[string]any{"other": "x"}, "metadata": map[string]any{"labels": map[string]any{"of": "others"}}})
		time.Sleep(time.Hour)
		if got := len(c.Writes()); got != writes {
			t.Errorf("fields of other clients caused %d writes", got-writes)
		}
	})
}

// Clients of another namespace can make a child in it large. The owner of the child must not wait
// for their own large writes.
func TestLargeChildrenInOtherNamespacesDelayNoOwner(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		c.CreateNamespace(t, "attacker")
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			if r.Object.Namespace == "default" {
				there := childMap("platform", r.Object.Spec.Field)
				there.Namespace = "attacker"
				gopf.Want(r, there)
			}
			gopf.Want(r, childMap("of-"+r.Object.Name, r.Object.Spec.Field))
			return nil
		}, gopf.Owns[*corev1.ConfigMap](gopf.InOtherNamespaces()))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, withItems("platform", "a"))
		const many = 100
		own := func(i int) *unstructured.Unstructured {
			o := withItems(fmt.Sprint("o-", i), "a")
			o.SetNamespace("attacker")
			return o
		}
		for i := range many {
			c.Create(t, own(i))
		}
		time.Sleep(time.Minute)
		noise := map[string]any{"data": map[string]any{"noise": strings.Repeat("x", 300<<10)}}
		c.Patch(t, configMaps, "attacker", "platform", noise)
		for i := range many {
			c.Patch(t, configMaps, "attacker", fmt.Sprint("of-o-", i), noise)
		}
		time.Sleep(time.Minute)
		c.Fault(gopftest.Requests("patch", "configmaps").Where(func(r gopftest.Request) bool { return r.Namespace == "attacker" }), gopftest.Hold(time.Second))
		for i := range many {
			c.Patch(t, resource, "attacker", fmt.Sprint("o-", i), map[string]any{"spec": map[string]any{"field": "b"}})
		}
		time.Sleep(5 * time.Second)
		changeField(t, c, "platform", "b")
		time.Sleep(5 * time.Second)
		if got := c.Get(t, configMaps, "default", "of-platform").Object["data"].(map[string]any)["key"]; got != "b" {
			t.Errorf("the child in the owner's namespace has %q after 5 s, want %q", got, "b")
		}
		time.Sleep(time.Hour)
	})
}
