package owned

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
)

var (
	configs = kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, Preferred: true}
	volumes = kind.Info{Version: "v1", Plural: "persistentvolumes", Kind: "PersistentVolume", Preferred: true}
	cluster = []kind.Info{configs, volumes}
)

// owner returns a reconcile handler that owns the kinds.
func owner(id string, owned ...handler.Owned) *handler.Handler {
	return &handler.Handler{ID: id, Family: handler.Reconciles, Reconcile: &handler.Reconcile{Owned: owned}}
}

func of(t *testing.T, name string, anywhere bool) handler.Owned {
	t.Helper()
	s, err := kind.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return handler.Owned{Of: s, Anywhere: anywhere}
}

func TestHandlersNeedTheWatchesOfTheirChildren(t *testing.T) {
	all, two := map[string]bool{"": true}, map[string]bool{"a": true, "b": true}
	for name, test := range map[string]struct {
		owned      []handler.Owned
		namespaces map[string]bool
		want       []string
	}{
		"no children":            {nil, two, nil},
		"in the whole cluster":   {[]handler.Owned{of(t, "configmaps", false)}, all, []string{"configmaps.v1 in "}},
		"in each namespace":      {[]handler.Owned{of(t, "configmaps", false)}, two, []string{"configmaps.v1 in a", "configmaps.v1 in b"}},
		"in no namespace yet":    {[]handler.Owned{of(t, "configmaps", false)}, nil, nil},
		"anywhere":               {[]handler.Owned{of(t, "configmaps", true)}, two, []string{"configmaps.v1 in "}},
		"of a cluster-wide kind": {[]handler.Owned{of(t, "persistentvolumes", false)}, two, []string{"persistentvolumes.v1 in "}},
		"of a missing kind":      {[]handler.Owned{of(t, "secrets", false), of(t, "persistentvolumes", false)}, two, []string{"persistentvolumes.v1 in "}},
	} {
		h := owner("h", test.owned...)
		var got []string
		for _, w := range planFor(handler.Set{h}, cluster, test.namespaces)[h] {
			got = append(got, w.Info.String()+" in "+w.Namespace)
		}
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestPlanHasTheWatchesOfAllHandlers(t *testing.T) {
	handlers := handler.Set{owner("a", of(t, "configmaps", true)), owner("b"), owner("c", of(t, "persistentvolumes", false))}
	var got []string
	for _, w := range planFor(handlers, cluster, nil).all(handlers) {
		got = append(got, w.Info.String())
	}
	if want := []string{"configmaps.v1", "persistentvolumes.v1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWatchedObjectsAreNotSelectedByTheLabelOfChildren(t *testing.T) {
	h := owner("h", of(t, "configmaps", false))
	h.Reconcile.Watched = []kind.Selector{of(t, "configmaps", false).Of, of(t, "secrets", false).Of}
	var got []string
	for _, w := range planFor(handler.Set{h}, cluster, map[string]bool{"a": true})[h] {
		got = append(got, fmt.Sprintf("%s in %s, all: %t", w.Info, w.Namespace, w.Foreign))
	}
	if want := []string{"configmaps.v1 in a, all: false", "configmaps.v1 in a, all: true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var verbs []string
	for _, n := range (&Children{handlers: handler.Set{h}}).Needs(cluster) {
		verbs = append(verbs, strings.Join(n.Verbs, "+"))
	}
	if want := []string{"get+list+watch+create+patch+delete", "get+list+watch"}; !slices.Equal(verbs, want) {
		t.Errorf("got the permissions %q, want %q", verbs, want)
	}
}

func TestChildrenNeedPermissionsForTheKindsOfTheCluster(t *testing.T) {
	c := &Children{handlers: handler.Set{owner("a", of(t, "configmaps", false), of(t, "secrets", false)), owner("b", of(t, "configmaps", true))}}
	var got []string
	for _, n := range c.Needs(cluster) {
		got = append(got, n.Info.String()+" by "+n.By[0])
	}
	if want := []string{"configmaps.v1 by a", "configmaps.v1 by b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOperatorsWithoutReconcileHandlersHaveNoChildren(t *testing.T) {
	c := New(Config{Handlers: handler.Set{{ID: "change", Family: handler.Changes}}})
	c.Follow(t.Context(), cluster, map[string]bool{"": true})
	c.Pause()
	c.Stop()
	if c.Runner() != nil || c.Needs(cluster) != nil || c.Listed(owner("a")) {
		t.Errorf("got the runner %v, the needs %v and the children of an unknown handler, want none", c.Runner(), c.Needs(cluster))
	}
}

func TestSchemasAreReadOnceForConditions(t *testing.T) {
	calls := 0
	found, failure := []bool{true, false}, errors.New("not published yet")
	c := &Children{config: Config{
		Log: slog.New(slog.DiscardHandler),
		Has: func(_ context.Context, _ kind.Info, paths ...[]string) ([]bool, error) {
			calls++
			if want := "[[status conditions] [status observedGeneration]]"; fmt.Sprint(paths) != want {
				t.Errorf("got the paths %v, want %s", paths, want)
			}
			return found, failure
		},
	}}
	if conditions, observed := c.Conditions(t.Context(), configs); conditions || observed {
		t.Errorf("without a schema: got %t and %t, want neither", conditions, observed)
	}
	failure = nil
	for range 2 {
		if conditions, observed := c.Conditions(t.Context(), configs); !conditions || observed {
			t.Errorf("got %t and %t, want conditions without the observed generation", conditions, observed)
		}
	}
	if calls != 2 {
		t.Errorf("the schema was requested %d times, want once after the failure", calls)
	}
}
