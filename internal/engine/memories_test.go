package engine

import (
	"fmt"
	"testing"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
)

// The event of a new object may overtake a list that has a deleted object of the same
// name.
func TestNewObjectIsFoundByNameInAnyOrder(t *testing.T) {
	for _, order := range [][]string{{"former", "successor"}, {"successor", "former"}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			r := &resource{memories: map[string]*process.Memory{}}
			if key := r.find("ns/a"); key != "" { // the first call builds the map of names
				t.Fatalf("found %s", key)
			}
			met := map[string]*process.Memory{}
			for _, uid := range order {
				body, err := object.FromMap(map[string]any{"metadata": map[string]any{"namespace": "ns", "name": "a", "uid": uid}})
				if err != nil {
					t.Fatal(err)
				}
				met[uid] = r.recall(uid, entry{event: &process.Event{Type: "ADDED", Body: body}})
			}
			r.forget("former", met["former"], nil)
			if key := r.find("ns/a"); key != "successor" {
				t.Errorf("found %q", key)
			}
			r.forget("successor", met["successor"], nil)
			if key := r.find("ns/a"); key != "" {
				t.Errorf("found %q after the deletion of both", key)
			}
			if len(r.shared) > 0 {
				t.Errorf("left over: %v", r.shared)
			}
		})
	}
}
