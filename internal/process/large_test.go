package process

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/progress"
)

// wide returns a value that takes much memory when it is decoded.
func wide() []any {
	list := make([]any, 5000)
	for i := range list {
		list[i] = map[string]any{"a": int64(i)}
	}
	return list
}

// full refuses records while it is full, as an API server does if the annotations of the
// object have no room.
type full struct {
	*cluster
	full bool
}

func (f *full) Patch(ctx context.Context, target kube.Target, how types.PatchType, raw []byte, params ...kube.Param) (*object.Body, error) {
	if f.full && strings.Contains(string(raw), "annotations") {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "x", nil)
	}
	return f.cluster.Patch(ctx, target, how, raw, params...)
}

// A tenant may have many large objects with full annotations. What the operator could not
// save stays in memory, but without the decoded values of the objects.
func TestRefusedRecordsOfALargeObjectKeepNoDecodedValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var creations, updates int
		var alarms []time.Duration
		c := newCluster()
		c.object["data"] = map[string]any{"wide": wide()}
		create, update := on(cause.Create, &creations), on(cause.Update, &updates)
		update.ID = "update"
		k := newKind(c, &alarms, create, update)
		api := &full{c, true}
		k.API = api
		event := &Event{Type: "ADDED", Body: c.body()}
		m := NewMemory(event)
		k.Turn(t.Context(), m, Occasion{Event: event})
		again := func() {
			time.Sleep(alarms[len(alarms)-1])
			k.Turn(t.Context(), m, Occasion{Alarm: true})
		}
		for range 3 {
			again()
			w := m.busy
			if w == nil || w.refused == nil || w.refused.view != nil || w.unsent != nil {
				t.Fatalf("the memory is %+v", w)
			}
		}
		if creations != 1 {
			t.Fatalf("%d calls of the creation handler", creations)
		}
		// The handler saw an earlier state, of which only a digest is left.
		c.object["data"] = map[string]any{"wide": wide(), "more": "x"}
		c.version++
		k.Turn(t.Context(), m, Occasion{Event: &Event{Type: "MODIFIED", Body: c.body()}})
		again()
		api.full = false
		again()
		k.Turn(t.Context(), m, Occasion{Event: &Event{Type: "MODIFIED", Body: c.body()}})
		if creations != 1 || updates != 1 || m.Waiting() {
			t.Errorf("%d creations, %d updates, waiting %v", creations, updates, m.Waiting())
		}
	})
}

// A tenant may enlarge many objects while slow handlers run. The turns started when there
// was memory for small objects.
func TestAnObjectThatGrowsDuringItsTurnGetsAnotherTurn(t *testing.T) {
	for name, grow := range map[string]func(c *cluster){
		"content": func(c *cluster) { c.object["data"] = map[string]any{"wide": wide()} },
		"compressed annotations": func(c *cluster) {
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			_ = json.NewEncoder(w).Encode(wide()) // a buffer never fails
			_ = w.Close()
			c.object["data"] = map[string]any{"a": "c"}
			c.object["metadata"].(map[string]any)["annotations"] = map[string]any{"packed": base64.StdEncoding.EncodeToString(packed.Bytes())}
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testGrowth(t, grow) }) })
	}
}

func testGrowth(t *testing.T, grow func(*cluster)) {
	var creations, updates int
	var alarms []time.Duration
	c := newCluster()
	create, update := on(cause.Create, &creations), on(cause.Update, &updates)
	update.ID = "update"
	create.Call = func(_ context.Context, r *handler.Request) error {
		creations++
		grow(c)
		c.version++
		r.Patch.Set("yes", "status", "made")
		return nil
	}
	k := newKind(c, &alarms, create, update)
	event := &Event{Type: "ADDED", Body: c.body()}
	m := NewMemory(event)
	k.Turn(t.Context(), m, Occasion{Event: event})
	if pending := m.Pending(); creations != 1 || updates != 0 || pending == nil || pending.Memory() < 1<<20 || len(alarms) != 1 || alarms[0] > 0 {
		t.Fatalf("%d creations, %d updates, alarms %v, waiting %v", creations, updates, alarms, m.Waiting())
	}
	k.Turn(t.Context(), m, Occasion{Alarm: true})
	if creations != 1 || updates != 1 || m.Waiting() {
		t.Errorf("%d creations, %d updates, waiting %v", creations, updates, m.Waiting())
	}
}

func TestAForgedNoteIsKeptOnce(t *testing.T) {
	for n, twice := range map[int]bool{1: true, fewSightings: true, 16_000: false} {
		h := &handling{state: progress.New(nil), note: &progress.Note{Key: "u"}, noted: true}
		for i := range n {
			h.note.Saw(fmt.Sprint("fn", i), map[string]any{"a": "b"}, time.Now())
		}
		h.loaded = h.note.Clone()
		slim := h.slim()
		if got := slim.loaded.Sightings() > 0; got != twice || slim.note.Sightings() != n || !got && slim.note.Equal(slim.loaded) {
			t.Errorf("%d sightings: %d and %d are kept", n, slim.note.Sightings(), slim.loaded.Sightings())
		}
	}
}

func TestUnwrittenChangesOfLargeObjectsLoseTheirDecodedValues(t *testing.T) {
	large, err := object.FromMap(map[string]any{"metadata": map[string]any{"name": "x"}, "data": wide()})
	if err != nil {
		t.Fatal(err)
	}
	with := func(edit func(*change)) *change {
		h := &handling{view: &view{}, state: progress.New(nil), note: &progress.Note{}, loaded: &progress.Note{}}
		c := &change{handling: h, ran: true, parts: []execute.Part{{Handler: "fn", Refuse: func(error) {}}}}
		edit(c)
		return c
	}
	for name, c := range map[string]struct {
		body *object.Body
		work pending
		want bool
	}{
		"a failed write":                        {large, pending{unsent: with(func(*change) {})}, true},
		"a failed write of a small object":      {&object.Body{}, pending{unsent: with(func(*change) {})}, false},
		"records that do not fit":               {large, pending{unsaved: with(func(*change) {})}, true},
		"a finalizer":                           {large, pending{unsent: with(func(c *change) { c.handling = nil })}, true},
		"changes that the note must store":      {large, pending{unsent: with(func(c *change) { c.todo = true })}, false},
		"changes that the note has":             {large, pending{unsent: with(func(c *change) { c.stored = 1 })}, false},
		"some of the parts were refused":        {large, pending{unsent: with(func(c *change) { c.apart = true })}, false},
		"some were refused, and all were tried": {large, pending{unsent: with(func(c *change) { c.apart, c.parts = true, nil })}, true},
	} {
		w, change := c.work, c.work.unsent
		if change == nil {
			change = c.work.unsaved
		}
		(&Processor{}).slim(&w, c.body)
		if got := w.unsent == nil && w.unsaved == nil; got != c.want {
			t.Errorf("%s: dropped: %v, want %v", name, got, c.want)
		}
		if !c.want {
			continue
		}
		if (w.refused == nil) != (change.handling == nil) || w.refused != nil && w.refused.view != nil {
			t.Errorf("%s: the outcomes are %v", name, w.refused)
		}
		asked := w.asked.take()
		if len(asked) != len(change.parts) || len(asked) > 0 && (asked[0].Handler != "fn" || asked[0].Refuse != nil) {
			t.Errorf("%s: the requested changes are %v", name, asked)
		}
	}
	w := pending{}
	if (&Processor{}).slim(&w, large); w.refused != nil || !w.asked.empty() {
		t.Error("there was nothing to drop")
	}
}
