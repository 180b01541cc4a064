package gopftest

import (
	"fmt"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
)

// Fill adds values to an index under key, as if each came from a separate object. Use it
// to test a handler that looks up an index without a running operator.
func Fill[K comparable, V any](of *gopf.IndexOf[K, V], key K, values ...V) {
	kept := gopf.TestSeam{}.Index(of).(*index.Index[K, V])
	for _, v := range values {
		kept.Put(fmt.Sprintf("gopftest/%v/%d", key, kept.Count(key)), map[K]V{key: v})
	}
}

// memosOf returns the memos of an object, which all calls share.
func (c *Cluster) memosOf(uid string) *handler.Memos {
	memos, _ := c.memos.LoadOrStore(uid, &handler.Memos{})
	return memos.(*handler.Memos)
}
