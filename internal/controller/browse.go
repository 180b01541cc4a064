package controller

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/process"
)

// Browsing selects known objects.
type Browsing struct {
	Search string // a part of NAMESPACE/NAME; "" means all
	State  string // retrying, running or paused; "" means all
	After  string // the NAMESPACE/NAME before the first object; "" means the beginning
	Limit  int    // of the returned objects
}

// Known is a known object.
type Known struct {
	UID, Namespace, Name      string
	Retrying, Running, Paused bool
}

// Browse returns the first of the selected objects, sorted by namespace and name, and the number of
// all selected ones. It reads only memory, and copies only the returned objects.
func (c *Controller) Browse(b Browsing) (page []Known, total int) {
	c.mu.Lock()
	memories := slices.Collect(maps.Values(c.memories))
	c.mu.Unlock()
	var retrying map[string]bool
	if b.State == "retrying" {
		retrying = map[string]bool{}
		c.eachRetry(func(key string) { retrying[key] = true })
	}
	search := strings.ToLower(b.Search)
	afterNamespace, afterName, _ := strings.Cut(b.After, "/")
	order := func(m *process.Memory, namespace, name string) int {
		return cmp.Or(strings.Compare(m.Namespace(), namespace), strings.Compare(m.Name(), name))
	}
	var first []*process.Memory // sorted
	for _, m := range memories {
		if !holds(m, search) || !c.in(m, b.State, retrying) {
			continue
		}
		total++
		if b.After != "" && order(m, afterNamespace, afterName) <= 0 {
			continue
		}
		if n := len(first); n == b.Limit {
			if n == 0 || order(m, first[n-1].Namespace(), first[n-1].Name()) >= 0 {
				continue
			}
			first = first[:n-1]
		}
		at, _ := slices.BinarySearchFunc(first, m, func(one, m *process.Memory) int { return order(one, m.Namespace(), m.Name()) })
		first = slices.Insert(first, at, m)
	}
	return c.describe(first), total
}

// holds reports whether the lower-case text is a part of NAMESPACE/NAME. Names have no upper-case letters.
func holds(m *process.Memory, text string) bool {
	if namespace, name, both := strings.Cut(text, "/"); both {
		return strings.HasSuffix(m.Namespace(), namespace) && strings.HasPrefix(m.Name(), name)
	}
	return strings.Contains(m.Name(), text) || strings.Contains(m.Namespace(), text)
}

// in reports whether the object is in the state.
func (c *Controller) in(m *process.Memory, state string, retrying map[string]bool) bool {
	switch state {
	case "retrying":
		return retrying[m.UID()]
	case "running":
		_, running := c.active.Load(m.UID())
		return running
	case "paused":
		return m.Paused()
	}
	return true
}

func (c *Controller) describe(memories []*process.Memory) []Known {
	page := make([]Known, len(memories))
	at := map[string]int{}
	for i, m := range memories {
		_, running := c.active.Load(m.UID())
		page[i] = Known{UID: m.UID(), Namespace: m.Namespace(), Name: m.Name(), Running: running, Paused: m.Paused()}
		at[m.UID()] = i
	}
	c.eachRetry(func(key string) {
		if i, ok := at[key]; ok {
			page[i].Retrying = true
		}
	})
	return page
}

// eachRetry calls do with the keys of the objects that have a turn at a set time. do must
// not block.
func (c *Controller) eachRetry(do func(key string)) {
	c.config.Clock.Count(func(a Appointment) bool {
		if a.controller == c {
			do(a.key)
		}
		return false
	})
}
