package engine

// gone remembers recently deleted objects, so that a late event from a server that
// lags behind does not bring them back. It is bounded: events about objects that
// were deleted long ago do not come any more.
type gone struct {
	graves map[string]grave // by key
	ring   []string
	next   int
}

// grave is what is known of a deletion.
type grave struct {
	mark    uint64 // when it came; see [process.Event.Mark]
	version uint64 // of the object; 0 if it is not known
}

// lately is how many deletions are remembered.
const lately = 512

func (g *gone) add(key string, of grave) {
	if g.graves == nil {
		g.graves, g.ring = map[string]grave{}, make([]string, lately)
	}
	delete(g.graves, g.ring[g.next])
	g.ring[g.next] = key
	g.graves[key] = of
	g.next = (g.next + 1) % lately
}

func (g *gone) has(key string) bool {
	_, has := g.graves[key]
	return has
}

// revive forgets the deletion of an object that a list has, if the list began
// after the deletion came: the cluster was restored from a backup.
func (g *gone) revive(key string, list uint64) {
	if of, has := g.graves[key]; has && of.mark < list {
		delete(g.graves, key)
	}
}

// readmit forgets the deletion of an object of which there is a newer version. It is
// for selections at the server: an object that leaves one looks deleted, and may
// come back.
func (g *gone) readmit(key string, version uint64) {
	if of, has := g.graves[key]; has && of.version < version {
		delete(g.graves, key)
	}
}
