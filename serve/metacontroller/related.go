package metacontroller

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// keptTime is the time for which a response of the customize hook is kept.
const keptTime = 20 * time.Minute

// customized is a kept response of the customize hook.
type customized struct {
	uid        types.UID
	generation int64
	rules      []*Rule
	at         time.Time
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
		for _, obj := range c.stored(r) {
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
	c.mu.Lock()
	kept, ok := c.kept[k]
	c.mu.Unlock()
	if ok && kept.uid == parent.GetUID() && kept.generation == parent.GetGeneration() && time.Since(kept.at) < keptTime {
		return kept.rules, nil
	}
	var response CustomizeHookResponse
	if err := c.customize.call(ctx, parent, map[string]any{"controller": c.requested, "parent": parent.Object}, &response); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[k] = customized{parent.GetUID(), parent.GetGeneration(), response.RelatedResources, time.Now()}
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
		c.mu.Lock()
		kept := maps.Clone(c.kept)
		c.mu.Unlock()
		for k, v := range kept {
			if c.selects(k, v, r, old) || c.selects(k, v, r, now) {
				c.queue.Add(k)
			}
		}
	})
}

func (c *controller) selects(k key, v customized, r resource, obj *unstructured.Unstructured) bool {
	if obj == nil {
		return false
	}
	for _, rule := range v.rules {
		if rule.APIVersion == r.apiVersion && rule.Resource == r.gvr.Resource && rule.Matches(c.customize.version, k.namespace, obj, c.namespaceLabels) {
			return true
		}
	}
	return false
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
