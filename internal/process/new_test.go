package process

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

func TestAStateReadAfterAConflictIsNewUntilItIsHandled(t *testing.T) {
	at := func(version string) *object.Body {
		return &object.Body{Identity: object.Identity{ResourceVersion: version}}
	}
	m := &Memory{version: 5, busy: &pending{body: at("7")}} // a write had a conflict and then failed
	for version, want := range map[string]bool{"4": false, "5": false, "6": false, "7": true, "8": true} {
		if got := m.isNew(&Event{Type: "MODIFIED", Body: at(version)}); got != want {
			t.Errorf("version %s: got %v, want %v", version, got, want)
		}
	}
}

// picky refuses patches with labels. Its next write conflicts with another client's.
type picky struct {
	*cluster
	others func() // a write of another client before the next one; may be nil
}

func (p *picky) Patch(ctx context.Context, target kube.Target, how types.PatchType, raw []byte, params ...kube.Param) (*object.Body, error) {
	if p.others != nil {
		p.others()
		p.others = nil
		p.version++
		return nil, apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("it has changed"))
	}
	if strings.Contains(string(raw), "labels") {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "x", nil)
	}
	return p.cluster.Patch(ctx, target, how, raw, params...)
}

func TestARefusedPatchFailsOnlyItsOwnHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var creations, others int
		var alarms []time.Duration
		c := newCluster()
		create := on(cause.Create, &creations)
		create.Limits.Retries = handler.Some(2)
		create.Call = func(_ context.Context, r *handler.Request) error {
			creations++
			r.Result = "done"
			r.Patch.Edit(func(fields map[string]any) {
				fields["metadata"].(map[string]any)["labels"] = map[string]any{"what?": "no!"}
			})
			return nil
		}
		other := on(cause.Create, &others)
		other.ID = "other"
		other.Call = func(_ context.Context, r *handler.Request) error {
			others++
			r.Patch.Set("yes", "data", "kept")
			return nil
		}
		k := newKind(c, &alarms, create, other)
		k.API = &picky{c, func() { c.object["data"] = map[string]any{"a": "c"} }}
		event := &Event{Type: "ADDED", Body: c.body()}
		m := NewMemory(event)
		k.Turn(t.Context(), m, Occasion{Event: event})
		// The watch event has the state that was read after the conflict.
		k.Turn(t.Context(), m, Occasion{Event: &Event{Type: "MODIFIED", Body: c.body()}})
		for range 3 {
			time.Sleep(alarms[len(alarms)-1])
			k.Turn(t.Context(), m, Occasion{Alarm: true})
		}
		if creations != 2 || others != 1 || m.Waiting() {
			t.Errorf("%d and %d calls, waiting %v; want the refused handler to run out of retries", creations, others, m.Waiting())
		}
		if c.object["data"].(map[string]any)["kept"] != "yes" || c.object["status"] != nil {
			t.Errorf("the object is %v, want the accepted change and no result of the refused handler", c.object)
		}
	})
}
