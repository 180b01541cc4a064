package engine

// gone remembers recently deleted objects, so that a late event from a server that
// lags behind does not bring them back. It is bounded: events about objects that
// were deleted long ago do not come any more.
type gone struct {
	marks map[string]uint64 // when the deletion came, by key; see [process.Event.Mark]
	ring  []string
	next  int
}

// lately is how many deletions are remembered.
const lately = 512

func (g *gone) add(key string, mark uint64) {
	if g.marks == nil {
		g.marks, g.ring = map[string]uint64{}, make([]string, lately)
	}
	delete(g.marks, g.ring[g.next])
	g.ring[g.next] = key
	g.marks[key] = mark
	g.next = (g.next + 1) % lately
}

func (g *gone) has(key string) bool {
	_, has := g.marks[key]
	return has
}

// revive forgets the deletion of an object that a list has, if the list began
// after the deletion came: the cluster was restored from a backup.
func (g *gone) revive(key string, list uint64) {
	if mark, has := g.marks[key]; has && mark < list {
		delete(g.marks, key)
	}
}
