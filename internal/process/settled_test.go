package process

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// briefCluster supports responses without a body. If forgetful is set, it drops the
// annotations of each patch.
type briefCluster struct {
	*cluster
	brief     int
	forgetful bool
}

func (c *briefCluster) PatchBriefly(ctx context.Context, t kube.Target, how types.PatchType, raw []byte, p ...kube.Param) (string, error) {
	c.brief++
	b, err := c.Patch(ctx, t, how, raw, p...)
	if err != nil {
		return "", err
	}
	if c.forgetful {
		delete(c.object["metadata"].(map[string]any), "annotations")
	}
	return b.ResourceVersion, nil
}

func TestABriefWriteIsConfirmedByItsWatchEvent(t *testing.T) {
	var calls int
	var alarms []time.Duration
	c := &briefCluster{cluster: newCluster()}
	k := newKind(c.cluster, &alarms, on(cause.Create, &calls))
	k.API = c
	event := &Event{Type: "ADDED", Body: c.body()}
	m := NewMemory(event)
	k.Turn(t.Context(), m, Occasion{Event: event})
	if calls != 1 || c.brief != 1 || !m.unchecked || m.Waiting() {
		t.Fatalf("%d calls, %d brief writes, unchecked %v, waiting %v", calls, c.brief, m.unchecked, m.Waiting())
	}
	if !k.TurnIfSettled(t.Context(), m, &Event{Type: "MODIFIED", Body: c.body()}) || m.unchecked {
		t.Error("the watch event of the write needs a turn")
	}
	if !k.TurnIfSettled(t.Context(), m, event) {
		t.Error("an older event needs a turn")
	}
	c.object["data"] = map[string]any{"a": "c"}
	c.version++
	if k.TurnIfSettled(t.Context(), m, &Event{Type: "MODIFIED", Body: c.body()}) {
		t.Error("a changed object needs no turn")
	}
	if calls != 1 || c.writes != 1 {
		t.Errorf("%d calls, %d writes", calls, c.writes)
	}
}

func TestALostBriefWriteIsDetected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls int
		var alarms []time.Duration
		c := &briefCluster{cluster: newCluster(), forgetful: true}
		k := newKind(c.cluster, &alarms, on(cause.Create, &calls))
		k.API = c
		event := &Event{Type: "ADDED", Body: c.body()}
		m := NewMemory(event)
		k.Turn(t.Context(), m, Occasion{Event: event})
		for range 3 { // the watch events of the writes
			echo := &Event{Type: "MODIFIED", Body: c.body()}
			if k.TurnIfSettled(t.Context(), m, echo) {
				t.Fatal("the lost write was not detected")
			}
			k.Turn(t.Context(), m, Occasion{Event: echo})
			if m.Waiting() {
				time.Sleep(alarms[len(alarms)-1])
				k.Turn(t.Context(), m, Occasion{Alarm: true})
			}
		}
		if calls != 4 || len(alarms) != 2 || alarms[1] <= alarms[0] {
			t.Errorf("%d calls with delays %v, want 4 calls and growing delays", calls, alarms)
		}
	})
}

func TestTurnIfSettledNeedsAKindWithoutOtherConditions(t *testing.T) {
	var calls int
	var alarms []time.Duration
	c := newCluster()
	k := newKind(c, &alarms, on(cause.Create, &calls))
	event := &Event{Type: "ADDED", Body: c.body()}
	k.Turn(t.Context(), NewMemory(event), Occasion{Event: event})
	listed := &Event{Body: c.body()}
	settled := func(change func(*Processor)) bool {
		k := newKind(c, &alarms, on(cause.Create, &calls))
		change(k)
		return k.TurnIfSettled(t.Context(), NewMemory(listed), listed)
	}
	mandatory := on(cause.Delete, &calls)
	mandatory.Mandatory = true
	guarded := c.body().Map()
	guarded["metadata"].(map[string]any)["finalizers"] = []any{"former"}
	body, err := object.FromMap(guarded)
	if err != nil {
		t.Fatal(err)
	}
	settledGuarded := func(change func(*Processor)) bool {
		k := newKind(c, &alarms, on(cause.Create, &calls))
		change(k)
		e := &Event{Body: body}
		return k.TurnIfSettled(t.Context(), NewMemory(e), e)
	}
	former := func(k *Processor) { k.Config.Former = []string{"former"} }
	for name, got := range map[string]struct{ got, want bool }{
		"a former finalizer":                {settledGuarded(func(k *Processor) { former(k); k.Handlers = append(k.Handlers, mandatory) }), true},
		"a former finalizer without a need": {settledGuarded(former), false},
		"the finalizer of another operator": {settledGuarded(func(*Processor) {}), true},
		"nothing else":                      {settled(func(*Processor) {}), true},
		"event handlers":                    {settled(func(k *Processor) { k.Watchers = k.Handlers }), false},
		"resume handlers":                   {settled(func(k *Processor) { k.Handlers = append(k.Handlers, on(cause.Resume, &calls)) }), false},
		"no finalizer yet":                  {settled(func(k *Processor) { k.Handlers = append(k.Handlers, mandatory) }), false},
		"fields":                            {settled(func(k *Processor) { k.Fields = append(k.Fields, []string{"status"}) }), false},
		"a secret":                          {settled(func(k *Processor) { k.Resource.Kind = "Secret" }), false},
	} {
		if got.got != got.want {
			t.Errorf("%s: got %v, want %v", name, got.got, got.want)
		}
	}
}

func TestResumeHandlersMatterOnlyUntilAnObjectIsHandled(t *testing.T) {
	var calls int
	var alarms []time.Duration
	c := newCluster()
	k := newKind(c, &alarms, on(cause.Create, &calls), on(cause.Resume, &calls))
	event := &Event{Type: "ADDED", Body: c.body()}
	k.Turn(t.Context(), NewMemory(event), Occasion{Event: event})

	listed := &Event{Body: c.body()}
	m := NewMemory(listed)
	if k.TurnIfSettled(t.Context(), m, listed) {
		t.Error("a list item needed no turn")
	}
	calls = 0
	k.Turn(t.Context(), m, Occasion{Event: listed})
	if calls != 1 || c.writes != 1 {
		t.Errorf("%d calls for a list item, %d writes in all", calls, c.writes)
	}
	c.version++ // another client has changed the status, for example
	if !k.TurnIfSettled(t.Context(), m, &Event{Type: "MODIFIED", Body: c.body()}) {
		t.Error("a later event needed a turn")
	}
}

func TestChangesOfEventHandlersAreVerifiedInTheResponse(t *testing.T) {
	var calls int
	var alarms []time.Duration
	c := &briefCluster{cluster: newCluster()}
	k := newKind(c.cluster, &alarms, on(cause.Create, &calls))
	k.API = c
	k.Resource.Subresources = []string{"status"}
	event := &Event{Type: "ADDED", Body: c.body()}
	m := NewMemory(event)
	k.Turn(t.Context(), m, Occasion{Event: event})
	brief := c.brief
	k.Watchers = handler.Set{{ID: "watch", Call: func(_ context.Context, r *handler.Request) error {
		r.Patch.Set("yes", "status", "seen")
		return nil
	}}}
	k.Turn(t.Context(), m, Occasion{Event: &Event{Type: "MODIFIED", Body: c.body()}})
	if c.writes != 2 || c.brief != brief {
		t.Errorf("%d writes, want 2; the last one was brief: %v", c.writes, c.brief != brief)
	}
}

func TestAResultThatTheSchemaKeepsIsWrittenBriefly(t *testing.T) {
	for name, test := range map[string]struct {
		keeps func(map[string]any) bool
		want  int
	}{
		"kept":      {func(status map[string]any) bool { return status["fn"] == "done" }, 1},
		"not kept":  {func(map[string]any) bool { return false }, 0},
		"not known": {nil, 0},
	} {
		var alarms []time.Duration
		c := &briefCluster{cluster: newCluster()}
		k := newKind(c.cluster, &alarms, &handler.Handler{ID: "fn", Reasons: map[cause.Reason]bool{cause.Create: true}, Call: func(_ context.Context, r *handler.Request) error {
			r.Result = "done"
			return nil
		}})
		k.API, k.Resource.Subresources, k.Config.KeepsStatus = c, []string{"status"}, test.keeps
		k.Config.Progress, k.Config.Base = stateOf("things").Storages(true)
		event := &Event{Type: "ADDED", Body: c.body()}
		m := NewMemory(event)
		k.Turn(t.Context(), m, Occasion{Event: event})
		if c.writes != 1 || c.brief != test.want {
			t.Errorf("%s: %d writes, %d of them brief, want 1 and %d", name, c.writes, c.brief, test.want)
		}
		if result, _ := c.body().Lookup("status", "fn"); result != "done" {
			t.Errorf("%s: the result is %v", name, result)
		}
		if !k.TurnIfSettled(t.Context(), m, &Event{Type: "MODIFIED", Body: c.body()}) || m.unchecked {
			t.Errorf("%s: the watch event of the write needs a turn", name)
		}
	}
}
