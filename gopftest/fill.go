package gopftest

import (
	"fmt"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/registry"
)

// Fill puts values into an index, as if each were of an object of its own; so
// handlers that look things up can be tested without a running operator.
func Fill[K comparable, V any](of *gopf.IndexOf[K, V], key K, values ...V) {
	gopf.TestIndex(of, func(kept *index.Index[K, V]) {
		for _, v := range values {
			kept.Put(fmt.Sprintf("gopftest/%v/%d", key, kept.Count(key)), map[K]V{key: v})
		}
	})
}

// memosOf are what handlers keep with an object, the same for all calls.
func (c *Cluster) memosOf(uid string) *registry.Memos {
	memos, _ := c.memos.LoadOrStore(uid, &registry.Memos{})
	return memos.(*registry.Memos)
}
