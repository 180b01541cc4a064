package vectors_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/stream"
)

// namespaceDeletion judges what an event makes of a namespace whose name
// matches.
//
// Differences: a namespace whose deletion waits for something is served, also
// if it was not before. Kopf leaves it as it was, so that after a restart what
// is in it would wait for ever for handlers that release it (and so would the
// namespace). A namespace that is gone is gone whatever its conditions say,
// where Kopf goes on serving it (quirk 8).
func namespaceDeletion(t *testing.T, v vector) {
	c := decode[struct {
		Event struct {
			Type   string
			Object json.RawMessage
		}
		IsDeleted bool `json:"is_deleted"`
		Blockers  [][2]string
		Effect    string `json:"effect_if_name_matches"`
	}](t, v.JSON)
	body, err := object.Parse(c.Event.Object)
	if err != nil {
		t.Fatal(err)
	}
	kind := kube.EventType(c.Event.Type)
	if !slices.Contains([]kube.EventType{kube.Listed, kube.Added, kube.Modified, kube.Deleted}, kind) {
		t.Fatalf("the type of the event is unknown: %q", c.Event.Type)
	}
	verdict := discovery.JudgeNamespace(stream.Event{Type: kind, Body: body})
	effect, _, _ := strings.Cut(c.Effect, " ") // words of explanation may follow
	want, known := map[string]bool{"add": true, "remove": false, "none": true}[effect]
	if !known {
		t.Fatalf("the effect is unknown: %q", c.Effect)
	}
	blockers := [][2]string{}
	for _, b := range verdict.Blockers {
		blockers = append(blockers, [2]string{b.Reason, b.Message})
	}
	if kind == kube.Deleted { // what it waited for does not matter any more
		c.Blockers, want = [][2]string{}, false
	}
	if diff := cmp.Diff(c.Blockers, blockers); diff != "" {
		t.Errorf("what the deletion waits for: -want +got\n%s", diff)
	}
	if verdict.Served != want {
		t.Errorf("served: got %t, want %t", verdict.Served, want)
	}
	if deleted := !verdict.Served || len(blockers) > 0; deleted != c.IsDeleted {
		t.Errorf("is deleted: got %t, want %t", deleted, c.IsDeleted)
	}
}
