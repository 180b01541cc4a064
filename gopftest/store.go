package gopftest

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// store holds all objects and their history, under one lock and one increasing version.
type store struct {
	mu        sync.Mutex
	version   int64
	compacted int64 // older versions cannot be read or resumed from
	tables    map[schema.GroupResource]*table

	// committed is called after every change, while the lock is held.
	committed func(gr schema.GroupResource, ev *event)
}

// table holds the objects of one resource, and their history.
type table struct {
	objects map[objectKey]*entry
	history []*event
	dropped int64         // version of the last event that was removed from the history
	changed chan struct{} // closed and replaced at every event
}

// objectKey sorts like the keys in the storage of the real API server.
type objectKey struct{ namespace, name string }

func (k objectKey) compare(o objectKey) int {
	return cmp.Or(cmp.Compare(k.namespace, o.namespace), cmp.Compare(k.name, o.name))
}

// entry is one immutable state of one object.
type entry struct {
	key     objectKey
	version int64
	uid     types.UID
	deleted bool // has a deletion timestamp
	labels  labels.Set
	owners  []metav1.OwnerReference
	raw     []byte // JSON in the storage version
}

// event is one change of one object.
type event struct {
	kind     watch.EventType
	version  int64
	time     time.Time
	old, new *entry // nil old means added, nil new means deleted
	last     *entry // deleted: the last state, with the version of the deletion
}

// maxHistory limits the events kept per resource, to about the size of the real API
// server's cache.
const maxHistory = 100_000

func newStore() *store {
	return &store{version: 1, tables: map[schema.GroupResource]*table{}}
}

// table returns the table of a resource. The store must be locked.
func (s *store) table(gr schema.GroupResource) *table {
	t, ok := s.tables[gr]
	if !ok {
		t = &table{objects: map[objectKey]*entry{}, changed: make(chan struct{})}
		s.tables[gr] = t
	}
	return t
}

// current returns the newest version.
func (s *store) current() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// put stores a new state of an object under a new version, and returns it. The store
// must be locked.
func (s *store) put(gr schema.GroupResource, obj *unstructured.Unstructured) *entry {
	t := s.table(gr)
	s.version++
	obj.SetResourceVersion(strconv.FormatInt(s.version, 10))
	e := newEntry(obj, s.version)
	ev := &event{kind: watch.Added, version: s.version, time: time.Now(), old: t.objects[e.key], new: e}
	if ev.old != nil {
		ev.kind = watch.Modified
	}
	t.objects[e.key] = e
	s.record(gr, t, ev)
	return e
}

// remove deletes an object. Its last state is reported under a new version. The store
// must be locked.
func (s *store) remove(gr schema.GroupResource, e *entry) {
	t := s.table(gr)
	s.version++
	last := e.object()
	last.SetResourceVersion(strconv.FormatInt(s.version, 10))
	delete(t.objects, e.key)
	s.record(gr, t, &event{kind: watch.Deleted, version: s.version, time: time.Now(), old: e, last: newEntry(last, s.version)})
}

func (s *store) record(gr schema.GroupResource, t *table, ev *event) {
	t.history = append(t.history, ev)
	if len(t.history) > maxHistory {
		t.dropUntil(t.history[len(t.history)/10].version)
	}
	t.wake()
	if s.committed != nil {
		s.committed(gr, ev)
	}
}

// compact makes all versions before the current one unreadable. The history stays for
// the watches that have not yet sent all of it.
func (s *store) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = s.version
}

func (t *table) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *table) dropUntil(version int64) {
	i := t.after(version)
	if i > 0 {
		t.dropped = t.history[i-1].version
		t.history = slices.Clone(t.history[i:])
	}
}

// after returns the position of the first event newer than the version.
func (t *table) after(version int64) int {
	i, found := slices.BinarySearchFunc(t.history, version, func(ev *event, v int64) int { return cmp.Compare(ev.version, v) })
	if found {
		i++
	}
	return i
}

// since returns the events newer than the version.
func (t *table) since(version int64) []*event { return t.history[t.after(version):] }

// at returns the objects as of a version, sorted. The history must reach back to it.
func (t *table) at(version int64) []*entry {
	objects := maps.Clone(t.objects)
	for _, ev := range slices.Backward(t.since(version)) {
		switch {
		case ev.old != nil:
			objects[ev.old.key] = ev.old
		default:
			delete(objects, ev.new.key)
		}
	}
	return slices.SortedFunc(maps.Values(objects), func(a, b *entry) int { return a.key.compare(b.key) })
}

// parseKey parses "namespace/name".
func parseKey(s string) objectKey {
	namespace, name, _ := strings.Cut(s, "/")
	return objectKey{namespace, name}
}
