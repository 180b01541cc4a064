package reconcile_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/kind"
)

// empty is an API server without objects. It counts discoveries.
type empty struct {
	apiclient.API
	discoveries, deletions int
}

func (e *empty) Discover(context.Context, ...string) (kube.Discovery, error) {
	e.discoveries++
	return kube.Discovery{Resources: []kind.Info{widgets}}, nil
}

func (e *empty) Get(_ context.Context, t kube.Target) (*object.Body, error) {
	if _, err := t.Path(); err != nil {
		return nil, err
	}
	return nil, apierrors.NewNotFound(t.Info.GVR().GroupResource(), t.Name)
}

func TestAnInventoryWithUnknownKindsCausesOneDiscovery(t *testing.T) {
	server := &empty{}
	runner := &reconcile.Runner{Objects: &apiclient.Objects{API: server, Known: func() []kind.Info { return nil }}, Name: "me",
		Store: childwatch.NewStore("me", func() uint64 { return 1 })}
	var forged []children.Entry
	for i := range 500 {
		for _, version := range []string{"v1", fmt.Sprintf("g%d.example.com/v1", i), "example.com/v1", "a/b/c"} {
			forged = append(forged, children.Entry{Key: children.Key{APIVersion: version, Kind: fmt.Sprintf("Kind%d", i), Namespace: "default", Name: "x"}})
		}
	}
	owner := reconcile.Owner{Identity: object.Identity{Namespace: "default", Name: "o", UID: "o-uid"}}
	done, _, err := runner.Teardown(t.Context(), owner, forged)
	if !done || err != nil {
		t.Errorf("done %t, error %v", done, err)
	}
	if server.discoveries != 1 {
		t.Errorf("%d discoveries", server.discoveries)
	}
}

// A tenant can put any text into the inventory of its object.
func TestAnEntryThatNoObjectCanHaveDelaysNoDeletion(t *testing.T) {
	server := &empty{}
	runner := &reconcile.Runner{Objects: &apiclient.Objects{API: server, Known: func() []kind.Info { return []kind.Info{widgets} }}, Name: "me",
		Store: childwatch.NewStore("me", func() uint64 { return 1 })}
	owner := reconcile.Owner{Identity: object.Identity{Namespace: "default", Name: "o", UID: "o-uid"}}
	for _, c := range []struct{ namespace, name string }{{"", "x"}, {"..", "x"}, {"default", ".."}, {"default", "a%2fb"}} {
		done, _, err := runner.Teardown(t.Context(), owner, []children.Entry{{Outside: true,
			Key: children.Key{APIVersion: widgets.APIVersion(), Kind: widgets.Kind, Namespace: c.namespace, Name: c.name}}})
		if !done || err != nil {
			t.Errorf("%q/%q: done %t, error %v", c.namespace, c.name, done, err)
		}
	}
}

func (e *empty) Delete(context.Context, kube.Target, kube.DeleteOptions) error {
	e.deletions++
	return nil
}

// addChild adds an object to the store that looks like a child of default/o.
func addChild(t *testing.T, store *childwatch.Store, namespace string, i int) {
	t.Helper()
	body, err := object.ParseWhole(fmt.Appendf(nil, `{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"namespace": %q, "name": "w%d", "uid": "%08d", "resourceVersion": "1",
		"labels": {"gopf.dev/children": "me"}, "annotations": {"gopf.dev/owner": "v1|Owner|default|o|o-uid"}, "managedFields": [{"manager": "me", "operation": "Apply"}]}}`, namespace, i, i))
	if err != nil {
		t.Fatal(err)
	}
	child, err := store.Read(widgets, body)
	if err != nil {
		t.Fatal(err)
	}
	store.Add(child)
}

// A client that knows the uid of an object in another namespace can create any number of
// objects that look like its children.
func TestAFloodOfStraysDelaysTheOwnerLittle(t *testing.T) {
	server, store := &empty{}, childwatch.NewStore("me", func() uint64 { return 1 })
	runner := &reconcile.Runner{Objects: &apiclient.Objects{API: server, Known: func() []kind.Info { return []kind.Info{widgets} }}, Name: "me", Store: store}
	owner := reconcile.Owner{Identity: object.Identity{Namespace: "default", Name: "o", UID: "o-uid"}}
	const flood = 100
	for i := range flood {
		addChild(t, store, "hostile", i)
	}
	result, err := runner.Run(t.Context(), reconcile.Task{Owner: owner, Inventory: &children.Inventory{}, Alone: true, Prune: true, Fights: &reconcile.Fights{}})
	if err != nil || len(result.Problems) > 0 {
		t.Errorf("problems %v, error %v", result.Problems, err)
	}
	if server.deletions == 0 || server.deletions > flood/4 {
		t.Errorf("one turn deleted %d of %d strays", server.deletions, flood)
	}
	if result.Again == 0 {
		t.Error("no other turn deletes more")
	}
	for range flood {
		if _, err := runner.Run(t.Context(), reconcile.Task{Owner: owner, Inventory: &children.Inventory{}, Alone: true, Prune: true, Fights: &reconcile.Fights{}}); err != nil {
			t.Fatal(err)
		}
	}
	if server.deletions != flood {
		t.Errorf("in the end, %d of %d strays are deleted", server.deletions, flood)
	}
	done, _, err := runner.Teardown(t.Context(), owner, nil)
	if !done || err != nil {
		t.Errorf("done %t, error %v", done, err)
	}
}
