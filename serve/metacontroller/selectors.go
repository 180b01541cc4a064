package metacontroller

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// parsed is the selector of one version of a parent. A nil selector is an invalid one.
type parsed struct {
	version  string
	selector labels.Selector
}

// selector returns the selector of a cached parent. nil means that it is invalid. Every event of an
// orphan needs the selectors of all parents of a namespace, so they are decoded once.
func (c *controller) selector(parent *unstructured.Unstructured) labels.Selector {
	uid, version := parent.GetUID(), parent.GetResourceVersion()
	c.mu.Lock()
	known, ok := c.selectors[uid]
	c.mu.Unlock()
	if ok && known.version == version {
		return known.selector
	}
	selector, err := Selector(parent, c.spec.GenerateSelector)
	if err != nil {
		selector = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.selectors == nil {
		c.selectors = map[types.UID]parsed{}
	}
	c.selectors[uid] = parsed{version, selector}
	return selector
}

// forgetSelector drops the selector of a deleted parent.
func (c *controller) forgetSelector(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.selectors, uid)
}
