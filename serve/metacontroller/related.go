package metacontroller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// keptTime is the time for which a response of the customize hook is kept.
const keptTime = 20 * time.Minute

// keptRulesSize is the approximate memory of the rules that are kept for a parent.
const keptRulesSize = 64 << 10

// customized is a kept response of the customize hook.
type customized struct {
	uid        types.UID
	generation int64
	rules      []*Rule
	at         time.Time
	events     bool // the rules are for events only
}

// outlines returns rules that need little memory, for a response that is too large to keep. They
// select all objects that the response may select, and others. So no event is missed. The next
// sync calls the hook again.
func outlines(rules []*Rule) (list []*Rule) {
	seen := map[scope]bool{}
	for _, r := range rules {
		s := scope{r.APIVersion, r.Resource, r.Namespace}
		if seen[s] || r.parsed.err != nil || len(s.apiVersion)+len(s.resource)+len(s.namespace) > keptRulesSize/mostRules {
			continue // the last ones are longer than any name in a cluster
		}
		seen[s] = true
		outline := &Rule{APIVersion: s.apiVersion, Resource: s.resource, Namespace: s.namespace}
		outline.parse()
		list = append(list, outline)
	}
	return list
}

// scope is a part of the cluster: the objects of a resource, in one namespace or with any namespace.
type scope struct{ apiVersion, resource, namespace string }

// keptRules are the kept responses of the customize hook. An event looks only at the rules that
// may select its object: in v1, parents of other namespaces cost no time. keptRules is safe for
// concurrent use.
type keptRules struct {
	mu       sync.RWMutex
	byParent map[key]customized
	byScope  map[scope]map[key][]*Rule
}

func (r *keptRules) get(k key) (customized, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	kept, ok := r.byParent[k]
	return kept, ok
}

// set keeps the response for a parent. version is that of the hook.
func (r *keptRules) set(k key, response customized, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byParent == nil {
		r.byParent, r.byScope = map[key]customized{}, map[scope]map[key][]*Rule{}
	}
	r.remove(k, version)
	r.byParent[k] = response
	for _, rule := range response.rules {
		s := scope{rule.APIVersion, rule.Resource, rule.scope(version, k.namespace)}
		if r.byScope[s] == nil {
			r.byScope[s] = map[key][]*Rule{}
		}
		r.byScope[s][k] = append(r.byScope[s][k], rule)
	}
}

// drop forgets the response for a parent that is gone.
func (r *keptRules) drop(k key, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(k, version)
}

// remove forgets a response. The lock must be held.
func (r *keptRules) remove(k key, version string) {
	for _, rule := range r.byParent[k].rules {
		s := scope{rule.APIVersion, rule.Resource, rule.scope(version, k.namespace)}
		if delete(r.byScope[s], k); len(r.byScope[s]) == 0 {
			delete(r.byScope, s)
		}
	}
	delete(r.byParent, k)
}

// find adds the parents whose rules select an object.
func (r *keptRules) find(of resource, obj *unstructured.Unstructured, version string, namespaceLabels func(string) map[string]string, selected map[key]bool) {
	scopes := []scope{{of.apiVersion, of.gvr.Resource, ""}}
	if namespace := obj.GetNamespace(); namespace != "" {
		scopes = append(scopes, scope{of.apiVersion, of.gvr.Resource, namespace})
	}
	known := &metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName(), Labels: obj.GetLabels()} // obj copies its labels for each caller
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, s := range scopes {
		for k, rules := range r.byScope[s] {
			if !selected[k] && slices.ContainsFunc(rules, func(rule *Rule) bool { return rule.Matches(version, k.namespace, known, namespaceLabels) }) {
				selected[k] = true
			}
		}
	}
}

// related returns the related objects of the parent.
func (s *step) related(ctx context.Context) (objects, error) {
	c, parent, found := s.controller, s.parent, objects{}
	if c.customize == nil {
		return found, nil
	}
	rules, err := c.rules(ctx, s.key, parent)
	if err != nil {
		return nil, err
	}
	for _, rule := range rules {
		r, err := c.env.resources.byName(rule.APIVersion, rule.Resource)
		if err != nil {
			return nil, err
		}
		if err := rule.Check(c.customize.version, parent.GetNamespace(), r.namespaced); err != nil {
			return nil, err
		}
		if err := s.relatives(ctx, rule, r); err != nil {
			return nil, err
		}
		if found[r.key()] == nil {
			found[r.key()] = map[string]*unstructured.Unstructured{}
		}
		for _, obj := range c.storedIn(r, rule.scope(c.customize.version, parent.GetNamespace())) {
			if !rule.Matches(c.customize.version, parent.GetNamespace(), obj, c.namespaceLabels) || found.get(obj) != nil {
				continue
			}
			obj, err := s.whole(ctx, r, obj)
			if err != nil {
				return nil, err
			}
			if obj != nil {
				found.add(r.key(), obj)
			}
		}
	}
	return found, nil
}

// rules returns the rules of a parent, from the customize hook if they are not kept.
func (c *controller) rules(ctx context.Context, k key, parent *unstructured.Unstructured) ([]*Rule, error) {
	if kept, ok := c.kept.get(k); ok && !kept.events && kept.uid == parent.GetUID() && kept.generation == parent.GetGeneration() && time.Since(kept.at) < keptTime {
		return kept.rules, nil
	}
	var response CustomizeHookResponse
	if err := c.customize.call(ctx, parent, map[string]any{"controller": c.requested, "parent": parent.Object}, &response); err != nil {
		return nil, err
	}
	kept, size := customized{uid: parent.GetUID(), generation: parent.GetGeneration(), rules: response.RelatedResources, at: time.Now()}, 0
	for _, r := range kept.rules {
		size += r.parsed.size
	}
	if size > keptRulesSize {
		kept.rules, kept.events = outlines(kept.rules), true
	}
	c.kept.set(k, kept, c.customize.version)
	return response.RelatedResources, nil
}

// relatives waits for the caches that a rule needs.
func (s *step) relatives(ctx context.Context, rule *Rule, r resource) error {
	if rule.NamespaceSelector != nil {
		labels, err := s.relate("labels of namespaces", namespaceResource, nil)
		if err == nil {
			err = labels.await(ctx, s.key)
		}
		if err != nil {
			return err
		}
	}
	objects, err := s.relate(r.key(), r, s.relatedEvents(r))
	if err != nil {
		return err
	}
	return objects.await(ctx, s.key)
}

// relatedEvents queues the parents whose rules select a changed object.
func (c *controller) relatedEvents(r resource) cache.ResourceEventHandler {
	return c.events(func(old, now *unstructured.Unstructured) {
		if old != nil && now != nil && maps.Equal(old.GetLabels(), now.GetLabels()) {
			old = nil // the same rules select both
		}
		selected := map[key]bool{}
		for _, obj := range []*unstructured.Unstructured{old, now} {
			if obj != nil {
				c.kept.find(r, obj, c.customize.version, c.namespaceLabels, selected)
			}
		}
		for k := range selected {
			c.queue.Add(k)
		}
	})
}

func (c *controller) namespaceLabels(name string) map[string]string {
	from := c.source(namespaceResource)
	if from == nil {
		return nil
	}
	item, ok, _ := from.GetStore().GetByKey(name)
	if !ok {
		return nil
	}
	u, _ := item.(*unstructured.Unstructured)
	return u.GetLabels()
}
