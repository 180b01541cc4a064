package controller

// gone holds the keys of recently deleted objects. A stale event of an API server that
// lags behind must not bring such an object back. The number is limited, because stale
// events arrive soon after the deletion or not at all.
type gone struct {
	graves map[string]grave // by key
	ring   []string
	next   int
}

// grave describes a deletion.
type grave struct {
	mark    uint64 // when the event arrived; see [process.Event.Mark]
	version uint64 // of the object; 0 means unknown
}

// maxGraves limits the number of stored deletions.
const maxGraves = 512

func (g *gone) add(key string, of grave) {
	if g.graves == nil {
		g.graves, g.ring = map[string]grave{}, make([]string, maxGraves)
	}
	delete(g.graves, g.ring[g.next])
	g.ring[g.next] = key
	g.graves[key] = of
	g.next = (g.next + 1) % maxGraves
}

func (g *gone) has(key string) bool {
	_, has := g.graves[key]
	return has
}

// revive drops the deletion of an object that is in a list, if the list started after
// the deletion arrived. This happens when a cluster is restored from a backup.
func (g *gone) revive(key string, list uint64) {
	if of, has := g.graves[key]; has && of.mark < list {
		delete(g.graves, key)
	}
}

// readmit drops the deletion of an object if the given resource version is newer. It is
// used with label selectors: an object that no longer matches looks deleted, and may
// match again later.
func (g *gone) readmit(key string, version uint64) {
	if of, has := g.graves[key]; has && of.version < version {
		delete(g.graves, key)
	}
}
