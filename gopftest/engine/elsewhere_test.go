package engine_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/storage"
)

// elsewhere is a storage outside of the objects.
type elsewhere struct {
	mu      sync.Mutex
	records map[string]map[string]storage.Record
	bases   map[string]map[string]any
}

func newElsewhere() *elsewhere {
	return &elsewhere{records: map[string]map[string]storage.Record{}, bases: map[string]map[string]any{}}
}

type elsewhereProgress struct{ *elsewhere }
type elsewhereBase struct{ *elsewhere }

func (e elsewhereProgress) Load(_ context.Context, o storage.Object, ids []string) (map[string]storage.Record, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := map[string]storage.Record{}
	for _, id := range ids {
		if r, ok := e.records[o.Identity().UID][id]; ok {
			found[id] = r
		}
	}
	return found, nil
}

func (e elsewhereProgress) Save(_ context.Context, o storage.Object, _ storage.Patch, changed map[string]storage.Record, purge []string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	uid := o.Identity().UID
	if e.records[uid] == nil {
		e.records[uid] = map[string]storage.Record{}
	}
	maps.Copy(e.records[uid], changed)
	for _, id := range purge {
		delete(e.records[uid], id)
	}
	return nil
}

func (e elsewhereProgress) Clean(map[string]any) {}

func (e elsewhereBase) Load(_ context.Context, o storage.Object) (map[string]any, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.bases[o.Identity().UID]
	return maps.Clone(b), ok, nil
}

func (e elsewhereBase) Save(_ context.Context, o storage.Object, _ storage.Patch, essence map[string]any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bases[o.Identity().UID] = essence
	return nil
}

func (e elsewhereBase) Clean(map[string]any) {}

// The object does not change when the handling ends, so there is no event.
func TestAChangeDuringAHandlingIsHandledWithAnExternalStorage(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				e := newElsewhere()
				start := func() (stop func()) {
					op := twoHandlers(&diary, false)
					op.Settings.Persistence.Progress, op.Settings.Persistence.Base = elsewhereProgress{e}, elsewhereBase{e}
					return gopftest.Start(t, op, c, gopf.Log(quiet()))
				}
				stop := start()
				settle()
				c.Create(t, example("x", "v1"))
				time.Sleep(10 * time.Second)
				c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "v2"}))
				if restart {
					stop()
					start()
				}
				time.Sleep(time.Hour)
				if got := diary.all(); !slices.Contains(got, "quick update v2") {
					t.Errorf("quick never saw v2: %q", got)
				}
			})
		})
	}
}
