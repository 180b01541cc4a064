package controller

import (
	"iter"
	"maps"

	"gopf.dev/gopf/internal/process"
)

// members holds the memories of objects by namespace. The work for one namespace does not
// grow with the objects of the others.
type members map[string]map[string]*process.Memory

func (m members) add(key string, memory *process.Memory) {
	if m[memory.Namespace()] == nil {
		m[memory.Namespace()] = map[string]*process.Memory{}
	}
	m[memory.Namespace()][key] = memory
}

func (m members) remove(key string, memory *process.Memory) {
	if delete(m[memory.Namespace()], key); len(m[memory.Namespace()]) == 0 {
		delete(m, memory.Namespace())
	}
}

// memorize adds the memory of an object. The caller must hold c.mu.
func (c *Controller) memorize(key string, m *process.Memory) {
	c.memories[key] = m
	if c.members != nil {
		c.members.add(key, m)
	}
}

// erase removes the memory of an object, and its alarm. The caller must hold c.mu.
func (c *Controller) erase(key string, m *process.Memory) {
	delete(c.memories, key)
	c.config.Clock.Cancel(Appointment{c, key}) // a turn that is still running sets no other; see setAlarm
	c.leaving.Delete(key)
	if refs := c.config.Children.References; refs != nil {
		refs.Drop(key)
	}
	if c.members != nil {
		c.members.remove(key, m)
	}
}

// within returns the memories of a namespace. An empty namespace means all. The caller
// must hold c.mu.
func (c *Controller) within(namespace string) map[string]*process.Memory {
	if namespace == "" {
		return c.memories
	}
	return c.members[namespace]
}

// missed holds the turns that were due during a pause, by namespace and key.
type missed map[string]map[string]entry

// take removes and returns the turns of the namespaces. An empty namespace means all.
func (m missed) take(namespaces []string) iter.Seq2[string, entry] {
	taken := make([]map[string]entry, 0, len(namespaces))
	for _, namespace := range namespaces {
		if namespace == "" {
			for _, turns := range m {
				taken = append(taken, turns)
			}
			clear(m)
			break
		}
		if turns := m[namespace]; turns != nil {
			taken = append(taken, turns)
			delete(m, namespace)
		}
	}
	return func(yield func(string, entry) bool) {
		for _, turns := range taken {
			for key, e := range maps.All(turns) {
				if !yield(key, e) {
					return
				}
			}
		}
	}
}

// departures holds the namespaces that have left the served ones, by name. The number is
// limited, because few events wait longer than a namespace takes to leave and to return.
type departures map[string]departure

// departure is a namespace that has left. The marks are those of [process.Event.Mark].
type departure struct {
	left     uint64 // when it left
	returned uint64 // when it was served again; 0 means that it was not
}

// maxDepartures limits the number of stored departures.
const maxDepartures = 512

// add stores that a namespace has left. The oldest departure is forgotten if there are too
// many.
func (d departures) add(namespace string, mark func() uint64) {
	d[namespace] = departure{left: mark()}
	if len(d) <= maxDepartures {
		return
	}
	oldest := namespace
	for other, of := range d {
		if of.left < d[oldest].left {
			oldest = other
		}
	}
	delete(d, oldest)
}

// back stores that a namespace is served again. It does nothing if the namespace has not
// left.
func (d departures) back(namespace string, mark func() uint64) {
	if of, has := d[namespace]; has {
		d[namespace] = departure{left: of.left, returned: mark()}
	}
}
