package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// requested returns the change that a call of the handler requested.
func requested(handler string, fields map[string]any) execute.Part {
	p := execute.Part{Handler: handler}
	p.Patch.Merge(fields)
	return p
}

func TestJoinedChangesHaveTheSameEffect(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) map[string]any
	value = func(depth int) map[string]any {
		fields := map[string]any{}
		for range 1 + rnd.IntN(3) {
			name := fmt.Sprintf("%d%c", depth, 'a'+rnd.IntN(3))
			if depth > 0 && rnd.IntN(2) == 0 {
				fields["o"+name] = value(depth - 1)
			} else {
				fields[name] = []any{nil, "x", int64(rnd.IntN(9)), []any{"y"}}[rnd.IntN(4)]
			}
		}
		return fields
	}
	for range 2000 {
		var u unwritten
		want := &patch.Patch{}
		for range rnd.IntN(40) {
			fields := value(2)
			u.add([]execute.Part{requested(fmt.Sprint("fn", rnd.IntN(4)), fields)})
			want.Merge(fields)
		}
		parts := u.take()
		if got := joint(parts).Fields(); len(parts) > 0 && !reflect.DeepEqual(got, want.Fields()) {
			t.Fatalf("got %v, want %v", got, want.Fields())
		}
		if len(parts) > fewParts {
			t.Fatalf("%d changes of 4 handlers are kept", len(parts))
		}
	}
}

func TestUnwrittenChangesAreKeptAsJSON(t *testing.T) {
	values, err := jsonvalue.Decode([]byte("[" + strings.Repeat(`{"a":{}},`, 1000) + "0]"))
	if err != nil {
		t.Fatal(err)
	}
	var u unwritten
	part := requested("fn", map[string]any{"status": map[string]any{"fn": values}})
	part.Patch.EditStatus(func(map[string]any) {})
	u.add([]execute.Part{part})
	if kept := u.parts[0]; kept.rest.Fields() != nil || len(kept.text) > 10_000 {
		t.Errorf("%d bytes of JSON are kept, and %v", len(kept.text), kept.rest.Fields())
	}
	if n := u.memory(); n < jsonvalue.Weight(part.Patch.Fields()) {
		t.Errorf("they count %d bytes, but take %d", n, jsonvalue.Weight(part.Patch.Fields()))
	}
	got := u.take()
	if len(got) != 1 || got[0].Handler != "fn" || len(got[0].Patch.Edits()) != 1 || got[0].Patch.EditsWhole() || !reflect.DeepEqual(got[0].Patch.Fields(), part.Patch.Fields()) {
		t.Errorf("got %v", got)
	}
	if !u.empty() || u.memory() != 0 {
		t.Error("they are still kept")
	}
}

// Events go on for as long as nothing can be written, and a handler may use other fields each time.
func TestUnwrittenChangesAreLimited(t *testing.T) {
	var u unwritten
	dropped := ""
	for i := range 40 {
		part := requested("large", map[string]any{fmt.Sprint("key", i): strings.Repeat("x", 200_000)})
		edited := execute.Part{Handler: "edits"}
		for range 3 {
			edited.Patch.Edit(func(fields map[string]any) { fields["last"] = i })
		}
		if d := u.add([]execute.Part{part, edited, requested("small", map[string]any{"n": int64(i)})}); d != "" {
			dropped = d
		}
	}
	size, edits := 0, 0
	for _, p := range u.parts {
		size += len(p.text)
		edits += len(p.rest.Edits())
	}
	if size > maxText+fewParts*200_000 || edits > maxEdits+fewParts || dropped == "" {
		t.Errorf("%d bytes and %d edits are kept; dropped: %q", size, edits, dropped)
	}
	fields := joint(u.take()).Fold(func() map[string]any { return map[string]any{} })
	if fields["n"] != int64(39) || fields["last"] != 39 || fields["key39"] == nil {
		t.Errorf("the newest changes are lost: n is %v, last %v", fields["n"], fields["last"])
	}
}

// outage is an API server to which nothing can be written while it is down.
type outage struct {
	*cluster
	down bool
}

func (o *outage) Patch(ctx context.Context, target kube.Target, how types.PatchType, raw []byte, params ...kube.Param) (*object.Body, error) {
	if o.down {
		return nil, &kube.UnreachableError{Err: errors.New("down")}
	}
	return o.cluster.Patch(ctx, target, how, raw, params...)
}

// An object stays in memory with the change that could not be sent. Each of its events may add
// another change of an event handler.
func TestEventsDuringAnOutageKeepOneChangePerHandler(t *testing.T) {
	for name, data := range map[string]any{"a small object": "b", "a large object": wide()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testEventsDuringAnOutage(t, data) })
		})
	}
}

func testEventsDuringAnOutage(t *testing.T, data any) {
	var calls int
	var alarms []time.Duration
	c := newCluster()
	c.object["data"] = map[string]any{"a": data}
	k := newKind(c, &alarms, on(cause.Create, &calls))
	api := &outage{c, true}
	k.API = api
	k.Watchers = handler.Set{{ID: "watcher", Call: func(_ context.Context, r *handler.Request) error {
		r.Patch.Set(r.Body.ResourceVersion, "status", "seen")
		return nil
	}}}
	m := NewMemory(&Event{Body: c.body()})
	for range 50 {
		c.version++
		k.Turn(t.Context(), m, Occasion{Event: &Event{Type: "MODIFIED", Body: c.body()}})
		waiting := len(m.busy.asked.parts)
		if m.busy.unsent != nil {
			waiting += len(m.busy.unsent.parts)
		}
		if waiting > fewParts {
			t.Fatalf("%d changes are kept", waiting)
		}
	}
	last := c.body().ResourceVersion
	api.down = false
	time.Sleep(time.Minute)
	k.Turn(t.Context(), m, Occasion{Alarm: true})
	if seen, _ := c.body().Lookup("status", "seen"); seen != last || calls != 1 {
		t.Errorf("after the outage, the status has %v, want %v, and the handler was called %d times", seen, last, calls)
	}
}
