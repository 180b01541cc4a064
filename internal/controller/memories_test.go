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
			c := &Controller{memories: map[string]*process.Memory{}}
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

func TestEventsFromBeforeANamespaceWasLeftAreDropped(t *testing.T) {
	marks := uint64(0)
	mark := func() uint64 { marks++; return marks }
	c := &Controller{memories: map[string]*process.Memory{}, processor: &process.Processor{Mark: mark}}
	event := func(namespace string) entry {
		body, err := object.Parse([]byte(`{"metadata": {"name": "x", "uid": "u-` + namespace + `", "namespace": "` + namespace + `", "resourceVersion": "1"}}`))
		if err != nil {
			t.Fatal(err)
		}
		return entry{event: &process.Event{Type: kube.Modified, Body: body, Mark: mark()}}
	}
	before, other := event("a"), event("b")
	c.setLeft("a", true)
	if c.recall("u-a", before) != nil {
		t.Error("an event of a namespace that is not served has a turn")
	}
	c.setLeft("a", false)
	c.setLeft("b", false) // it was served all the time
	if c.recall("u-a", before) != nil {
		t.Error("an event from before has a turn when the namespace is served again")
	}
	if c.recall("u-a", event("a")) == nil || c.recall("u-b", other) == nil {
		t.Error("an event of a served namespace has no turn")
	}
}
