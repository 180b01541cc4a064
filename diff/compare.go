package diff

import (
	"cmp"
	"math"
	"slices"
)

// comparison finds the differences in two steps. The first step visits every value once,
// and builds a tree of the differences. The second step converts the tree to items. In this
// way, no value is compared again on every level above it, and equal values cost no memory.
type comparison struct {
	ignoreAdded bool // ignore keys that only the new object has
	levels      int  // objects below so many levels are compared as a whole
	places      int  // that were found; with more than maxPlaces, the comparison is incomplete
}

// maxPlaces is the maximum number of places in the tree. A place and its item take up to
// half a kilobyte.
const maxPlaces = 1 << 16

// of returns the differences. If there are too many, they are found on fewer levels.
func of(old, new any, ignoreAdded bool) Diff {
	for _, levels := range [...]int{math.MaxInt, 2, 1, 0} {
		c := comparison{ignoreAdded: ignoreAdded, levels: levels}
		root, differ := c.compare(old, new, 0)
		if !differ {
			return nil
		}
		if c.places > maxPlaces {
			continue
		}
		l := lister{found: make(Diff, 0, root.items())}
		l.list(&root)
		return l.found
	}
	return nil // not reached: with 0 levels, there is one place
}

// place is a path at which two values differ. If both values are objects, inside contains
// the differences within them.
type place struct {
	op       Op
	key      string // the last key of the path
	group    group
	old, new any
	inside   []place // nil means that the values differ as a whole
}

// group is the set of objects that have the key: old, new or both. Differences are ordered by group.
type group uint8

const (
	onlyNew group = iota
	onlyOld
	both
)

// items returns the number of items of the place, or more.
func (p *place) items() int {
	if p.inside == nil {
		return 1
	}
	n := 0
	for i := range p.inside {
		n += p.inside[i].items()
	}
	return n
}

// compare returns the difference of two values on a level, if there is one.
func (c *comparison) compare(old, new any, level int) (p place, differ bool) {
	oldMap, oldIsMap := old.(map[string]any)
	newMap, newIsMap := new.(map[string]any)
	switch {
	case oldIsMap && newIsMap && level < c.levels:
		inside := c.compareMaps(oldMap, newMap, level)
		return place{op: Change, old: old, new: new, inside: inside}, inside != nil
	case oldIsMap && newIsMap:
		return place{op: Change, old: old, new: new}, c.differ(oldMap, newMap)
	case Equal(old, new):
		return place{}, false
	case old == nil:
		return place{op: Add, new: new}, true
	case new == nil:
		return place{op: Remove, old: old}, true
	}
	return place{op: Change, old: old, new: new}, true
}

// differ reports whether two objects differ.
func (c *comparison) differ(old, new map[string]any) bool {
	one := comparison{ignoreAdded: c.ignoreAdded, levels: math.MaxInt, places: maxPlaces} // the first place is enough
	return one.compareMaps(old, new, 0) != nil
}

func (c *comparison) compareMaps(old, new map[string]any, level int) (inside []place) {
	note := func(key string, of group, old, new any) {
		if p, differ := c.compare(old, new, level+1); differ {
			c.places++
			p.key, p.group = key, of
			inside = append(inside, p)
		}
	}
	common := 0
	for key, value := range new {
		if c.places > maxPlaces {
			return inside
		}
		former, ok := old[key]
		switch {
		case ok:
			common++ //mutate:skip it only saves the loop below
			note(key, both, former, value)
		case !c.ignoreAdded:
			note(key, onlyNew, nil, value)
		}
	}
	if common < len(old) {
		for key, value := range old {
			if c.places > maxPlaces {
				return inside
			}
			if _, ok := new[key]; !ok {
				note(key, onlyOld, value, nil)
			}
		}
	}
	slices.SortFunc(inside, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.key, b.key))
	})
	return inside
}

const (
	// freeDepth is the number of levels on which paths are not counted.
	freeDepth = 16
	// maxSteps is the maximum number of keys in all paths below these levels.
	maxSteps = 1 << 20
	// freePath is the size in bytes of a path up to which its repetitions are not counted.
	freePath = 256
	// maxPathBytes is the maximum size of all repetitions of longer paths. One long key above
	// many changed values would otherwise make the text of a difference a thousand times as
	// large as the object.
	maxPathBytes = 4 << 20
)

// lister converts places to items.
type lister struct {
	path  []string // from the root to the current place
	size  int      // of the path, in bytes
	steps int      // keys in the paths of the items so far, and of pending ones on the levels above
	bytes int      // the same for the bytes of long paths
	found Diff
}

func (l *lister) list(p *place) {
	depth := len(l.path)
	steps, bytes := (depth+1)*len(p.inside), 0
	if l.size > freePath {
		bytes = l.size * len(p.inside)
	}
	if p.inside == nil || depth > freeDepth && l.steps+steps > maxSteps || bytes > 0 && l.bytes+bytes > maxPathBytes {
		l.found = append(l.found, Item{Op: p.op, Path: slices.Clone(l.path), Old: p.old, New: p.new})
		return
	}
	l.steps += steps
	l.bytes += bytes
	for i := range p.inside {
		key := p.inside[i].key
		l.path, l.size = append(l.path, key), l.size+len(key)
		l.list(&p.inside[i])
		l.path, l.size = l.path[:depth], l.size-len(key)
	}
}
