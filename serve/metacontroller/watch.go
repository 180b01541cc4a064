package metacontroller

import (
	"context"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

var revisionResource = resource{gvr: revisions, apiVersion: Group + "/" + Version, kind: "ControllerRevision", namespaced: true}

var namespaceResource = resource{gvr: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, apiVersion: "v1", kind: "Namespace"}

// watch opens a resource and waits until the cache is filled. It returns false if the
// controller stops before.
func (c *controller) watch(ctx context.Context, r resource, handler cache.ResourceEventHandler) bool {
	_, synced, err := c.open(r, handler)
	if err != nil {
		return false
	}
	select {
	case <-synced.Done():
		return true
	case <-ctx.Done():
		return false
	}
}

// open starts the watch of a resource, unless there is one, and adds a handler of its events.
// handler may be nil. synced is done when the cache is filled and the handler has got its
// objects. An error means that the controller stops.
func (c *controller) open(r resource, handler cache.ResourceEventHandler) (from *source, synced cache.DoneChecker, err error) {
	c.mu.Lock()
	name := r.gvr.String()
	from, ok := c.sources[name]
	if !ok {
		informer := dynamicinformer.NewFilteredDynamicInformer(c.env.dynamic, r.gvr, metav1.NamespaceAll, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil).Informer()
		log := c.env.log.With("controller", c.name, "resource", r.gvr.Resource, "apiVersion", r.apiVersion)
		from = &source{SharedIndexInformer: informer, log: log, failed: make(chan struct{})}
		_ = from.SetTransform(c.shrink)
		_ = from.SetWatchErrorHandlerWithContext(from.fail)
		c.sources[name] = from
		stop := c.stop
		c.running.Go(func() { from.Run(stop) })
	}
	c.mu.Unlock()
	if handler == nil {
		return from, from.HasSyncedChecker(), nil
	}
	registration, err := from.AddEventHandler(handler)
	if err != nil {
		return nil, nil, err
	}
	return from, registration.HasSyncedChecker(), nil
}

// source returns the cache of a resource. nil means that the resource is not watched.
func (c *controller) source(r resource) *source {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sources[r.gvr.String()]
}

// stored returns the objects of a watched resource. They must not be changed.
func (c *controller) stored(r resource) []*unstructured.Unstructured {
	return unstructuredList(c.source(r).GetStore().List())
}

// storedIn returns those of a namespace, or all for "".
func (c *controller) storedIn(r resource, namespace string) []*unstructured.Unstructured {
	if namespace == "" {
		return c.stored(r)
	}
	items, err := c.source(r).GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil
	}
	return unstructuredList(items)
}

func unstructuredList(items []any) []*unstructured.Unstructured {
	list := make([]*unstructured.Unstructured, 0, len(items))
	for _, item := range items {
		if u, ok := item.(*unstructured.Unstructured); ok {
			list = append(list, u)
		}
	}
	return list
}

// parent returns a parent from the cache, or nil.
func (c *controller) parent(k key) *unstructured.Unstructured {
	name := k.name
	if k.namespace != "" {
		name = k.namespace + "/" + k.name
	}
	item, ok, _ := c.source(c.parents[k.resource].resource).GetStore().GetByKey(name)
	if !ok {
		return nil
	}
	u, _ := item.(*unstructured.Unstructured)
	return u
}

// events calls a function with the old and the new state of changed objects. One of them is
// nil when an object is added or deleted. A panic of the function is logged.
func (c *controller) events(handle func(old, now *unstructured.Unstructured)) cache.ResourceEventHandler {
	changed := func(old, now *unstructured.Unstructured) {
		err := safely(func() error { handle(old, now); return nil })
		if err != nil {
			c.env.log.Error("The handling of an event failed.", "controller", c.name, "object", describe(either(now, old)), "error", err)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if u, ok := o.(*unstructured.Unstructured); ok {
				changed(nil, u)
			}
		},
		UpdateFunc: func(o, n any) {
			old, _ := o.(*unstructured.Unstructured)
			now, _ := n.(*unstructured.Unstructured)
			if old != nil && now != nil && old.GetResourceVersion() != now.GetResourceVersion() {
				changed(old, now)
			}
		},
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			if u, ok := o.(*unstructured.Unstructured); ok {
				changed(u, nil)
			}
		},
	}
}

// either returns the first object that is not nil.
func either(a, b *unstructured.Unstructured) *unstructured.Unstructured {
	if a != nil {
		return a
	}
	return b
}

func (c *controller) parentEvents(i int) cache.ResourceEventHandler {
	return c.events(func(old, now *unstructured.Unstructured) {
		if old != nil && now != nil && c.parents[i].ignoreStatus && onlyStatus(old, now) {
			return
		}
		obj := either(now, old)
		if now == nil {
			c.forgetSelector(old.GetUID())
		}
		c.queue.Add(key{i, obj.GetNamespace(), obj.GetName()})
	})
}

// onlyStatus reports whether an update changed only parts that do not matter when status
// changes are ignored.
func onlyStatus(old, now *unstructured.Unstructured) bool {
	return now.GetDeletionTimestamp() == nil && old.GetGeneration() == now.GetGeneration() &&
		maps.Equal(old.GetLabels(), now.GetLabels()) && maps.Equal(old.GetAnnotations(), now.GetAnnotations())
}

func (c *controller) childEvents(r resource) cache.ResourceEventHandler {
	return c.events(func(old, now *unstructured.Unstructured) {
		if now == nil {
			c.forget(r, old)
		}
		if old != nil && !released(old, now) {
			c.childChanged(old, false)
		}
		if now != nil && !stillOrphan(old, now) {
			c.childChanged(now, true)
		}
	})
}

// released reports whether a child has lost its controller and is otherwise the same. Its
// former parent then knows: the parent does so for children that do not match its selector.
// A child that matches is an orphan to adopt.
func released(old, now *unstructured.Unstructured) bool {
	return now != nil && metav1.GetControllerOfNoCopy(now) == nil && maps.Equal(old.GetLabels(), now.GetLabels())
}

// stillOrphan reports whether an update of an orphan changed nothing that decides which
// parents adopt it. They were queued before. A parent that failed to adopt it, or has another
// selector now, is queued without an event of the orphan.
func stillOrphan(old, now *unstructured.Unstructured) bool {
	return old != nil && old.GetUID() == now.GetUID() && maps.Equal(old.GetLabels(), now.GetLabels()) &&
		metav1.GetControllerOfNoCopy(old) == nil && metav1.GetControllerOfNoCopy(now) == nil
}

// childPause is the delay of a sync after an event of a child. When the garbage collector
// deletes children, the event about the parent usually arrives within this time. Events of several
// children become one sync.
const childPause = 10 * time.Millisecond

// childChanged queues the parent of a child. A living orphan queues all parents whose
// selector matches.
func (c *controller) childChanged(obj *unstructured.Unstructured, living bool) {
	ref, marks := metav1.GetControllerOfNoCopy(obj), labels.Set(nil)
	if ref == nil && c.composite && living {
		marks = obj.GetLabels() // obj copies its labels for each caller
	}
	for i, p := range c.parents {
		if ref != nil {
			gv, err := schema.ParseGroupVersion(ref.APIVersion)
			if err != nil || gv.Group != p.gvr.Group || ref.Kind != p.kind {
				continue
			}
			k := key{i, "", ref.Name}
			if p.namespaced {
				k.namespace = obj.GetNamespace()
			}
			if parent := c.parent(k); parent != nil && parent.GetUID() == ref.UID {
				c.queue.AddAfter(k, childPause)
			}
			continue
		}
		if !c.composite || !living || p.namespaced && obj.GetNamespace() == "" {
			continue
		}
		within := "" // a tenant's orphan must not cost time for the parents of others
		if p.namespaced {
			within = obj.GetNamespace()
		}
		for _, parent := range c.storedIn(p.resource, within) {
			if s := c.selector(parent); s != nil && s.Matches(marks) {
				c.queue.AddAfter(key{i, parent.GetNamespace(), parent.GetName()}, childPause)
			}
		}
	}
}
