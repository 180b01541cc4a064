package process

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
)

// refusing is an API server without children. It forbids the operator to read one of them.
type refusing struct {
	apiclient.API
	*cluster
	reads int
}

func (r *refusing) Get(ctx context.Context, t kube.Target) (*object.Body, error) {
	if t.Info.Plural != childInfo.Plural {
		return r.cluster.Get(ctx, t)
	}
	r.reads++
	if t.Name == "secret" {
		return nil, apierrors.NewForbidden(t.Info.GVR().GroupResource(), t.Name, errors.New("no"))
	}
	return nil, apierrors.NewNotFound(t.Info.GVR().GroupResource(), t.Name)
}

func (r *refusing) Patch(ctx context.Context, t kube.Target, kind types.PatchType, raw []byte, p ...kube.Param) (*object.Body, error) {
	return r.cluster.Patch(ctx, t, kind, raw, p...)
}

// A tenant can put any entries into the inventory of its object, and then delete the object.
func TestAForgedInventoryCausesFewRequestsDuringADeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forged := &children.Inventory{Owner: "u"}
		for i := range children.MaxEntries - 1 {
			forged.Entries = append(forged.Entries, children.Entry{Key: childKey(fmt.Sprintf("c%d", i)), UID: "00000001", Outside: true})
		}
		forged.Entries = append(forged.Entries, children.Entry{Key: childKey("secret"), UID: "00000001", Outside: true})
		text, err := forged.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var alarms []time.Duration
		c := newCluster()
		c.object["metadata"] = map[string]any{"name": "x", "namespace": "ns", "uid": "u", "deletionTimestamp": "2000-01-01T00:00:00Z", "finalizers": []any{"f"},
			"annotations": map[string]any{storage.DefaultPrefix + "/gopf.children.fn": storage.Record{Message: &text}.Encode(false)}}
		k, server := newKind(c, &alarms), &refusing{cluster: c}
		k.API = server
		known := func() []kind.Info { return []kind.Info{childInfo} }
		k.Reconcile = &Reconcile{
			Listed:   func(*handler.Handler) bool { return true },
			Handlers: handler.Set{{ID: "fn", Reconcile: &handler.Reconcile{}}},
			Runner:   &reconcile.Runner{Objects: &apiclient.Objects{API: server, Known: known}, Store: childwatch.NewStore("op", func() uint64 { return 1 }), Name: "op"},
		}
		event := &Event{Type: "ADDED", Body: c.body()}
		m := NewMemory(event)
		k.Turn(t.Context(), m, Occasion{Event: event})
		if server.reads != children.MaxEntries {
			t.Errorf("the first turn read %d children, want all %d", server.reads, children.MaxEntries)
		}
		var pauses []time.Duration
		for range 7 {
			pauses = append(pauses, alarms[len(alarms)-1]/time.Second)
			time.Sleep(alarms[len(alarms)-1])
			k.Turn(t.Context(), m, Occasion{Alarm: true})
		}
		if more := server.reads - children.MaxEntries; more != 7 {
			t.Errorf("seven more turns read %d children, want 7", more)
		}
		if want := []time.Duration{10, 20, 40, 80, 160, 320, 320}; !slices.Equal(pauses, want) {
			t.Errorf("the pauses are %d seconds, want %d", pauses, want)
		}
	})
}

// A tenant can name thousands of sub-handlers in a record of its object, and give all of them
// the same large record: their ids differ in characters that annotations cannot have.
//
// Not parallel, because it measures the allocations of the process.
func TestForgedSubHandlersTakeLittleMemory(t *testing.T) {
	large := strings.Repeat("x", 100_000)
	parent := storage.Record{Purpose: "create", Started: time.Now()}
	for i := range 8_000 {
		id := []byte("a_____________b")
		for bit := range 13 {
			id[1+bit] = "<>"[i>>bit&1]
		}
		parent.Subrefs = append(parent.Subrefs, string(id))
	}
	annotations := map[string]any{}
	for key, record := range map[string]storage.Record{"fn": parent, "gopf.handling": {Purpose: "create"}, "a_____________b": {Message: &large}} {
		annotations[storage.DefaultPrefix+"/"+key] = record.Encode(false)
	}
	var alarms []time.Duration
	calls, c := 0, newCluster()
	c.object["metadata"] = map[string]any{"name": "x", "namespace": "ns", "uid": "u", "annotations": annotations}
	k := newKind(c, &alarms, on(cause.Create, &calls))
	event := &Event{Type: "ADDED", Body: c.body()}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	k.Turn(t.Context(), NewMemory(event), Occasion{Event: event})
	runtime.ReadMemStats(&after)
	if calls != 1 || c.writes == 0 {
		t.Errorf("the object is not handled: %d calls, %d writes", calls, c.writes)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
		t.Errorf("the turn allocated %d bytes", took)
	}
}

// A client that deletes an object with the policy Orphan keeps its children, whatever the
// order is in which the operator would delete them.
func TestOrphansAreNotDeletedWithTheirOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text, err := (&children.Inventory{Owner: "u", Entries: []children.Entry{{Key: childKey("one"), UID: "00000001", Wave: 1}}}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		var alarms []time.Duration
		c := newCluster()
		metadata := map[string]any{"name": "x", "namespace": "ns", "uid": "u", "deletionTimestamp": "2000-01-01T00:00:00Z", "finalizers": []any{"orphan", "f", "other"},
			"annotations": map[string]any{storage.DefaultPrefix + "/gopf.children.fn": storage.Record{Message: &text}.Encode(false)}}
		c.object["metadata"] = metadata
		k, server := newKind(c, &alarms), &refusing{cluster: c}
		k.API = server
		k.Reconcile = &Reconcile{
			Listed:   func(*handler.Handler) bool { return true },
			Handlers: handler.Set{{ID: "fn", Reconcile: &handler.Reconcile{}}},
			Runner: &reconcile.Runner{Objects: &apiclient.Objects{API: server, Known: func() []kind.Info { return []kind.Info{childInfo} }},
				Store: childwatch.NewStore("op", func() uint64 { return 1 }), Name: "op"},
		}
		event := &Event{Type: "ADDED", Body: c.body()}
		m := NewMemory(event)
		c.broken = errors.New("not now")
		k.Turn(t.Context(), m, Occasion{Event: event})
		c.broken = nil
		metadata["finalizers"], c.version = []any{"f", "other"}, c.version+1 // by the garbage collector
		k.Turn(t.Context(), m, Occasion{Event: &Event{Type: "MODIFIED", Body: c.body()}})
		if server.reads > 0 {
			t.Errorf("%d children were looked up", server.reads)
		}
		if c.writes < 2 {
			t.Errorf("the operator wrote %d times: it does not remove its finalizer", c.writes)
		}
	})
}

func childKey(name string) children.Key {
	return children.Key{APIVersion: childInfo.APIVersion(), Kind: childInfo.Kind, Namespace: "ns", Name: name}
}

// A forged note of 28 KB, with 64 states that sub-handlers saw, took 3 s of CPU time per change of
// its object.
func TestAnObjectIsComparedWithFewStatesOfSubHandlers(t *testing.T) {
	now := map[string]any{"spec": map[string]any{"size": int64(1)}}
	for n, want := range map[int]int{1: 2, maxStates: maxStates + 1, maxStates + 1: maxStates + 2, 64: maxStates + 2} {
		h := &handling{view: &view{Processor: &Processor{}, body: &object.Body{}, cause: &cause.Cause{Reason: cause.Noop, Old: now, New: now}}, note: &progress.Note{}}
		for i := range n {
			h.note.Saw(fmt.Sprintf("fn/%d", i), map[string]any{"spec": map[string]any{"size": int64(i + 2)}}, time.Time{})
		}
		causes, updates := 0, 0
		for c := range h.causesOf("fn", nil) {
			if causes++; c.Reason == cause.Update {
				updates++
			}
		}
		if causes != want || updates != want-1 {
			t.Errorf("%d states: %d causes, of which %d are updates; want %d and %d", n, causes, updates, want, want-1)
		}
	}
}
