package metacontroller

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

// keptResponses is the total size of the responses with an ETag that the operator keeps.
const keptResponses = 16 << 20

// tagKey names a response: the hook, and the parent as KIND/NAMESPACE/NAME.
type tagKey struct {
	hook   *hook
	parent string
}

func (k tagKey) namespace() string {
	_, rest, _ := strings.Cut(k.parent, "/")
	namespace, _, _ := strings.Cut(rest, "/")
	return namespace
}

// tagged is a stored response.
type tagged struct {
	key    tagKey
	tag    string
	body   []byte
	stored time.Time
}

// size includes the memory of the entry itself.
func (t tagged) size() int { return len(t.key.parent) + len(t.tag) + len(t.body) + 256 }

// tags are the stored responses of all hooks. If their total size is above the limit, the
// namespace with the most loses those that were not used for the longest time. A hook is then
// called without If-None-Match. tags is safe for concurrent use.
type tags struct {
	limit int

	mu     sync.Mutex
	byKey  map[tagKey]*list.Element
	shares map[string]*tagShare // by namespace
	size   int
}

// tagShare has the responses about the parents of a namespace.
type tagShare struct {
	order list.List // of tagged; the one that was used last is the last
	size  int
}

func newTags(limit int) *tags {
	return &tags{limit: limit, byKey: map[tagKey]*list.Element{}, shares: map[string]*tagShare{}}
}

// get returns a response that is not older than age. 0 means any age.
func (t *tags) get(key tagKey, age time.Duration) (tagged, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.byKey[key]
	if !ok {
		return tagged{}, false
	}
	stored := e.Value.(tagged)
	if age > 0 && time.Since(stored.stored) > age {
		t.remove(key)
		return tagged{}, false
	}
	t.shares[key.namespace()].order.MoveToBack(e)
	return stored, true
}

// set stores a response, and drops others if there are too many.
func (t *tags) set(response tagged) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(response.key)
	if response.size() > t.limit {
		return
	}
	share := t.shares[response.key.namespace()]
	if share == nil {
		share = &tagShare{}
		t.shares[response.key.namespace()] = share
	}
	t.byKey[response.key] = share.order.PushBack(response)
	t.size += response.size()
	for share.size += response.size(); t.size > t.limit; {
		t.remove(t.largest().order.Front().Value.(tagged).key)
	}
}

// largest returns the share with the most bytes. There must be one.
func (t *tags) largest() (most *tagShare) {
	for _, share := range t.shares {
		if most == nil || share.size > most.size {
			most = share
		}
	}
	return most
}

// drop drops a response.
func (t *tags) drop(key tagKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(key)
}

// dropAll drops the responses of a hook.
func (t *tags) dropAll(of *hook) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.byKey {
		if key.hook == of {
			t.remove(key)
		}
	}
}

// remove drops a response. The lock must be held.
func (t *tags) remove(key tagKey) {
	e, ok := t.byKey[key]
	if !ok {
		return
	}
	share, size := t.shares[key.namespace()], e.Value.(tagged).size()
	share.order.Remove(e)
	delete(t.byKey, key)
	t.size -= size
	if share.size -= size; share.order.Len() == 0 {
		delete(t.shares, key.namespace())
	}
}
