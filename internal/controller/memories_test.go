package controller

import (
	"fmt"
	"testing"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
)

// The event of a new object may overtake a list that has a deleted object of the same
// name.
func TestNewObjectIsFoundByNameInAnyOrder(t *testing.T) {
	for _, order := range [][]string{{"former", "successor"}, {"successor", "former"}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			c := &Controller{memories: map[string]*process.Memory{}, config: Config{Clock: NewClock()}}
			if key := c.find("ns/a"); key != "" { // the first call builds the map of names
				t.Fatalf("found %s", key)
			}
			met := map[string]*process.Memory{}
			for _, uid := range order {
				body, err := object.FromMap(map[string]any{"metadata": map[string]any{"namespace": "ns", "name": "a", "uid": uid}})
				if err != nil {
					t.Fatal(err)
				}
				met[uid] = c.recall(uid, entry{event: &process.Event{Type: kube.Added, Body: body}})
			}
			c.forget("former", met["former"], nil)
			if key := c.find("ns/a"); key != "successor" {
				t.Errorf("found %q", key)
			}
			c.forget("successor", met["successor"], nil)
			if key := c.find("ns/a"); key != "" {
				t.Errorf("found %q after the deletion of both", key)
			}
			if len(c.shared) > 0 {
				t.Errorf("left over: %v", c.shared)
			}
		})
	}
}

// eventIn returns an event of the object x in the namespace.
func eventIn(t *testing.T, namespace string, mark uint64) (key string, e entry) {
	t.Helper()
	body, err := object.Parse([]byte(`{"metadata": {"name": "x", "uid": "u-` + namespace + `", "namespace": "` + namespace + `", "resourceVersion": "1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return "u-" + namespace, entry{event: &process.Event{Type: kube.Modified, Body: body, Mark: mark}}
}

func TestEventsFromBeforeANamespaceWasLeftAreDropped(t *testing.T) {
	marks := uint64(0)
	mark := func() uint64 { marks++; return marks }
	c := &Controller{memories: map[string]*process.Memory{}, processor: &process.Processor{Mark: mark}}
	c.setServed("a", true)
	c.setServed("b", true)
	keyA, before := eventIn(t, "a", mark())
	keyB, other := eventIn(t, "b", mark())
	c.setServed("a", false)
	if c.recall(keyA, before) != nil {
		t.Error("an event of a namespace that is not served has a turn")
	}
	c.setServed("a", true)
	c.setServed("b", true) // it was served all the time
	if c.recall(keyA, before) != nil {
		t.Error("an event from before has a turn when the namespace is served again")
	}
	_, after := eventIn(t, "a", mark())
	if c.recall(keyA, after) == nil || c.recall(keyB, other) == nil {
		t.Error("an event of a served namespace has no turn")
	}
}

// Tenants may create and delete namespaces.
func TestRemovedNamespacesAreForgotten(t *testing.T) {
	marks := uint64(0)
	mark := func() uint64 { marks++; return marks }
	c := &Controller{memories: map[string]*process.Memory{}, processor: &process.Processor{Mark: mark}}
	c.setServed("first", true)
	stays, before := eventIn(t, "last", mark())
	for i := range 10 * maxDepartures {
		name := fmt.Sprint(i)
		c.setServed(name, true)
		c.unlisted = map[string]bool{name: true}
		c.setServed(name, false)
		c.forgetNamespace(name)
		if len(c.unlisted) > 0 {
			t.Fatalf("the list of the namespace %s is still expected", name)
		}
	}
	if n := len(c.left) + len(c.namespaces); n > maxDepartures+1 {
		t.Errorf("%d names of namespaces are kept", n)
	}
	for _, name := range []string{"0", fmt.Sprint(10*maxDepartures - 1)} {
		if key, e := eventIn(t, name, mark()); c.recall(key, e) != nil {
			t.Errorf("an event of the removed namespace %s has a turn", name)
		}
	}
	c.setServed("last", true)
	c.setServed("last", false)
	for i := range maxDepartures - 1 {
		c.setServed(fmt.Sprint("others-", i), true)
		c.setServed(fmt.Sprint("others-", i), false)
	}
	c.setServed("last", true)
	if c.recall(stays, before) != nil {
		t.Error("an event from before the last departures has a turn")
	}
}
