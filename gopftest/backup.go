package gopftest

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Backup is the content of a cluster at one moment.
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

// Restore makes all objects be as they were at the backup, as a restore of the real
// cluster's database does. The resourceVersion goes back, too: new changes get
// versions that were used before. Nothing is known of the time before the backup,
// and the connections of all watches break.
//
// Definitions of custom resources must be the same as at the backup.
func (c *Cluster) Restore(t testing.TB, b *Backup) {
	t.Helper()
	c.memoryOnly("Restore")
	if !c.restore(b) {
		t.Fatal("Restore: the definitions of custom resources have changed since the backup")
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
