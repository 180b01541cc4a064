package metacontroller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// shelf is the cache of a watch. It counts the objects that are read from it.
type shelf struct {
	cache.Indexer
	read int
}

func newShelf(t *testing.T, objects ...*unstructured.Unstructured) *shelf {
	t.Helper()
	s := &shelf{Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	for _, o := range objects {
		if err := s.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *shelf) List() []any {
	all := s.Indexer.List()
	s.read += len(all)
	return all
}

func (s *shelf) ByIndex(name, value string) ([]any, error) {
	found, err := s.Indexer.ByIndex(name, value)
	s.read += len(found)
	return found, err
}

// informer is a watch with a filled cache.
type informer struct {
	cache.SharedIndexInformer
	of *shelf
}

func (i informer) GetStore() cache.Store     { return i.of }
func (i informer) GetIndexer() cache.Indexer { return i.of }

// intake is a queue that notes what is added.
type intake struct {
	workqueue.TypedRateLimitingInterface[key]
	added []string
}

func (i *intake) AddAfter(k key, _ time.Duration) { i.added = append(i.added, k.namespace+"/"+k.name) }

// Add notes nothing.
func (i *intake) Add(key) {}

// take returns the additions since the last call.
func (i *intake) take() (added []string) {
	added, i.added = i.added, nil
	return added
}

func selecting(namespace, name, app string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": namespace, "name": name, "uid": namespace + "-" + name},
		"spec":     map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": app}}},
	}}
}

// parentsIn returns a controller with the parents of the cache.
func parentsIn(stock *shelf) (*controller, *intake) {
	things := resource{gvr: schema.GroupVersionResource{Group: "ctl.example.com", Version: "v1", Resource: "things"}, kind: "Thing", namespaced: true}
	queued := &intake{}
	sources := map[string]*source{things.gvr.String(): {SharedIndexInformer: informer{of: stock}}}
	return &controller{composite: true, parents: []parents{{resource: things}}, sources: sources, queue: queued}, queued
}

// A tenant edits objects that look like children without a parent, as often as it can.
func TestEditsOfAnOrphanCostNoLookAtParents(t *testing.T) {
	all := []*unstructured.Unstructured{selecting("tenant", "cats", "cats"), selecting("tenant", "dogs", "dogs")}
	for i := range 100 {
		all = append(all, selecting("others", fmt.Sprint(i), "cats"))
	}
	stock := newShelf(t, all...)
	c, queued := parentsIn(stock)
	events := c.childEvents(resource{namespaced: true})
	version := 0
	orphan := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		version++
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
			"namespace": "tenant", "name": "x", "uid": "u", "resourceVersion": fmt.Sprint(version), "labels": map[string]any{"app": "cats"},
		}}}
		if change != nil {
			change(o)
		}
		return o
	}
	check := func(what string, read int, want ...string) {
		t.Helper()
		if got := queued.take(); !slices.Equal(got, want) {
			t.Errorf("%s: the parents %q are queued, want %q", what, got, want)
		}
		if stock.read > read {
			t.Errorf("%s: %d parents were read, want at most %d", what, stock.read, read)
		}
		stock.read = 0
	}

	last := orphan(nil)
	update := func(change func(*unstructured.Unstructured)) {
		now := orphan(change)
		events.OnUpdate(last, now)
		last = now
	}
	events.OnAdd(last, false)
	check("a new orphan", 2, "tenant/cats")
	for i := range 100 {
		update(func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"edit": fmt.Sprint(i)}) })
	}
	check("other edits", 0)
	update(func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"app": "dogs"}) })
	check("another label", 2, "tenant/dogs")
	update(func(o *unstructured.Unstructured) {
		o.SetLabels(map[string]string{"app": "dogs"})
		o.SetUID("another")
	})
	check("another object of the same name, after an interruption of the watch", 2, "tenant/dogs")

	owned := orphan(func(o *unstructured.Unstructured) { own(selecting("others", "1", ""), o) })
	released := orphan(nil)
	events.OnUpdate(owned, released)
	check("a child that has lost its parent", 2, "tenant/cats")
}

func TestAClusterScopedOrphanHasNoParentsInNamespaces(t *testing.T) {
	c, queued := parentsIn(newShelf(t, selecting("tenant", "cats", "cats")))
	c.childEvents(resource{}).OnAdd(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x", "labels": map[string]any{"app": "cats"}}}}, false)
	if added := queued.take(); len(added) > 0 {
		t.Errorf("queued: %q", added)
	}
}
