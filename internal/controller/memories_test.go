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
