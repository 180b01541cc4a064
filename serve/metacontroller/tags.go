package metacontroller

import (
	"container/list"
	"time"
)

// keptResponses is the total size of the responses with an ETag that a hook keeps.
const keptResponses = 64 << 20

// tagged is a stored response.
type tagged struct {
	key, tag string
	body     []byte
	stored   time.Time
}

// size includes the memory of the entry itself.
func (t tagged) size() int { return len(t.key) + len(t.tag) + len(t.body) + 256 }

// tags are the stored responses of a hook. The oldest ones are dropped when their total size
// is above the limit. The hook is then called without If-None-Match.
type tags struct {
	limit int
	byKey map[string]*list.Element
	order list.List // of tagged, oldest first
	size  int
}

func (t *tags) get(key string) (tagged, bool) {
	e, ok := t.byKey[key]
	if !ok {
		return tagged{}, false
	}
	return e.Value.(tagged), true
}

func (t *tags) set(response tagged) {
	t.drop(response.key)
	if response.size() > t.limit {
		return
	}
	if t.byKey == nil {
		t.byKey = map[string]*list.Element{}
	}
	t.byKey[response.key] = t.order.PushBack(response)
	for t.size += response.size(); t.size > t.limit; {
		t.drop(t.order.Front().Value.(tagged).key)
	}
}

func (t *tags) drop(key string) {
	if e, ok := t.byKey[key]; ok {
		t.size -= e.Value.(tagged).size()
		t.order.Remove(e)
		delete(t.byKey, key)
	}
}
