package engine

// gone remembers the objects that were deleted lately, so that an event which
// comes late, from a server that lags behind, does not bring them back to life.
// It is bounded: what is long gone does not come up any more.
type gone struct {
	keys map[string]bool
	ring []string
	next int
}

// lately is how many deletions are remembered.
const lately = 512

func (g *gone) add(key string) {
	if g.keys == nil {
		g.keys, g.ring = map[string]bool{}, make([]string, lately)
	}
	delete(g.keys, g.ring[g.next])
	g.ring[g.next] = key
	g.keys[key] = true
	g.next = (g.next + 1) % lately
}

func (g *gone) has(key string) bool { return g.keys[key] }

// revive forgets a deletion: the object was listed, so that it exists, maybe
// because the cluster was restored from a backup.
func (g *gone) revive(key string) { delete(g.keys, key) }
