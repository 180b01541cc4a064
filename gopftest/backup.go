package gopftest

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Backup holds all objects of a cluster at one moment. Restore it by [Cluster.Restore].
type Backup struct {
	version int64
	objects map[schema.GroupResource]map[objectKey]*entry
}

// Backup returns a copy of all objects, for [Cluster.Restore].
func (c *Cluster) Backup() *Backup {
	c.memoryOnly("Backup")
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &Backup{version: s.version, objects: map[schema.GroupResource]map[objectKey]*entry{}}
	for gr, t := range s.tables {
		b.objects[gr] = maps.Clone(t.objects)
	}
	return b
}

// Restore resets all objects to their state in the backup, as a restore of etcd does.
// The resourceVersion also goes back, so new changes get versions that were used
// before. The watch history is lost, and all watch connections break.
//
// Restore fails the test if custom resource definitions changed since the backup.
func (c *Cluster) Restore(t testing.TB, b *Backup) {
	t.Helper()
	c.memoryOnly("Restore")
	if !c.restore(b) {
		t.Fatal("Restore: custom resource definitions changed since the backup; restore supports only backups with the same definitions")
	}
	c.CutStreams()
}

func (c *Cluster) restore(b *Backup) bool {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if !maps.Equal(s.table(crdResource()).objects, b.objects[crdResource()]) {
		return false
	}
	s.version, s.compacted = b.version, b.version
	c.reactions.owners = newOwnership()
	for gr, table := range s.tables {
		table.objects = map[objectKey]*entry{}
		table.history, table.dropped = nil, b.version
		for key, e := range b.objects[gr] {
			table.objects[key] = e
			c.reactions.owners.record(gr, &event{kind: watch.Added, new: e})
		}
		table.wake()
	}
	return true
}
