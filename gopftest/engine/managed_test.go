package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// managed reports whether the object says which clients have set its fields.
func managed(obj *Example) bool {
	return len(obj.ManagedFields) > 0 && obj.ManagedFields[0].Manager != "" && obj.ManagedFields[0].FieldsV1 != nil
}

func TestManagedFieldsAreThereForHandlersThatAskForThem(t *testing.T) {
	for name, c := range map[string]struct {
		ask  func(*gopf.Resource[*Example]) *gopf.Resource[*Example]
		want bool
	}{
		"asked for": {(*gopf.Resource[*Example]).WithManagedFields, true},
		"not":       {func(r *gopf.Resource[*Example]) *gopf.Resource[*Example] { return r }, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, cluster *gopftest.Cluster) {
				seed := func(name string) {
					obj := example(name, name)
					obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Apply", APIVersion: "kopf.dev/v1",
						FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:field":{}}}`)}})
					cluster.Seed(t, obj)
				}
				seed("listed")
				var diary calls
				op := gopf.New()
				kex := c.ask(gopf.For[*Example](op, resource))
				// Two handlers: the second is called with the response to the patch of the first.
				for _, id := range []string{"one", "two"} {
					kex.OnCreate(id, func(_ context.Context, ch *gopf.Change[*Example]) error {
						diary.add("%s %s %v", id, ch.Object.Name, managed(ch.Object))
						ch.Patch.Annotate("by", id)
						return nil
					})
				}
				kex.OnEvent("event", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
					if e.Type == "ADDED" {
						diary.add("event %s %v", e.Object.Name, managed(e.Object))
					}
					return nil
				})
				index := gopf.Mirror(kex)
				gopftest.Start(t, op, cluster)
				settle()
				seed("watched")
				settle()
				var want []string
				for _, call := range []string{"one listed", "two listed", "event watched", "one watched", "two watched"} {
					want = append(want, fmt.Sprintf("%s %v", call, c.want))
				}
				if got := diary.all(); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
				obj, _ := index.One(types.NamespacedName{Namespace: "default", Name: "listed"})
				if got := managed(obj); got != c.want {
					t.Errorf("in the index: %v", got)
				}
			})
		})
	}
}

func TestManagedFieldsAreThereForReviewsThatAskForThem(t *testing.T) {
	for name, c := range map[string]struct {
		ask  func(*gopf.Resource[*Example]) *gopf.Resource[*Example]
		want bool
	}{
		"asked for": {(*gopf.Resource[*Example]).WithManagedFields, true},
		"not":       {func(r *gopf.Resource[*Example]) *gopf.Resource[*Example] { return r }, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, cluster *gopftest.Cluster) {
				obj := example("x", "a")
				obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Apply", APIVersion: "kopf.dev/v1",
					FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:field":{}}}`)}})
				cluster.Seed(t, obj)
				var diary calls
				op := gopf.New()
				op.Settings.Admission.Managed = "auto.kopf.dev"
				c.ask(gopf.For[*Example](op, resource)).Validate("v", func(_ context.Context, r *gopf.Review[*Example]) error {
					diary.add("%v", managed(r.Object))
					return nil
				})
				gopftest.Start(t, op, cluster)
				settle()
				cluster.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
				if got := diary.all(); !slices.Equal(got, []string{fmt.Sprint(c.want)}) {
					t.Errorf("got %q, want %v", got, c.want)
				}
			})
		})
	}
}
