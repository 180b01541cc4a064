package engine

import (
	"fmt"
	"testing"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
)

// An object that was created ahead of a listing may be met before a former one of
// its name, which is gone but was listed.
func TestASuccessorIsFoundByItsNameWhicheverIsMetFirst(t *testing.T) {
	for _, order := range [][]string{{"former", "successor"}, {"successor", "former"}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			r := &resource{memories: map[string]*process.Memory{}}
			if key := r.find("ns/a"); key != "" { // from now on names are kept
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
				t.Errorf("found %q after the end", key)
			}
			if len(r.shared) > 0 {
				t.Errorf("left over: %v", r.shared)
			}
		})
	}
}
