package process

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
)

func TestWakingNamesOnlyDeclaredHandlers(t *testing.T) {
	k := &Processor{
		Handlers: handler.Set{{ID: "make"}, {ID: "fn/spec.a"}, {ID: "fn/spec.b"}, {ID: "make"}},
		Daemons:  &daemon.Set{Config: daemon.Config{Specs: []*daemon.Spec{{Handler: &handler.Handler{ID: "tick"}}}}},
	}
	for _, c := range []struct {
		ids  []string
		want *Wake
	}{
		{nil, &Wake{All: true}},
		{[]string{"make"}, &Wake{IDs: []string{"make"}}},
		{[]string{"make/sub"}, &Wake{IDs: []string{"make"}}},
		{[]string{"maker", "mak", "other"}, nil},
		{[]string{"fn"}, &Wake{IDs: []string{"fn/spec.a", "fn/spec.b"}}},
		{[]string{"fn/spec.b", "other"}, &Wake{IDs: []string{"fn/spec.b"}}},
		{[]string{"tick", "make"}, &Wake{IDs: []string{"make", "tick"}}},
	} {
		got := k.Waking(c.ids)
		if (got == nil) != (c.want == nil) || got != nil && (got.All != c.want.All || !slices.Equal(got.IDs, c.want.IDs)) {
			t.Errorf("waking %q: got %+v, want %+v", c.ids, got, c.want)
		}
	}
}

func TestJoinedWakesAreBoundedByTheNumberOfHandlers(t *testing.T) {
	k := &Processor{}
	const handlers = 5
	for i := range handlers {
		k.Handlers = append(k.Handlers, &handler.Handler{ID: fmt.Sprint("h", i)})
	}
	var joined *Wake
	for i := range 20_000 {
		joined = joined.Join(k.Waking([]string{fmt.Sprintf("h%d/sub%d", i%7, i), fmt.Sprint("h", i%7)}))
	}
	if len(joined.IDs) != handlers {
		t.Errorf("got %d ids, want one for each of %d handlers: %q", len(joined.IDs), handlers, joined.IDs)
	}
}

func TestJoiningWakesModifiesNeither(t *testing.T) {
	a, b := &Wake{IDs: []string{"a"}}, &Wake{IDs: []string{"b", "a"}}
	joined := a.Join(b)
	if !slices.Equal(joined.IDs, []string{"a", "b"}) || len(a.IDs) != 1 || len(b.IDs) != 2 {
		t.Errorf("joined %q, from %q and %q", joined.IDs, a.IDs, b.IDs)
	}
	if all := a.Join(&Wake{All: true}); !all.All || len(all.IDs) > 0 {
		t.Errorf("joined with all: %+v", all)
	}
}

// Clients of other namespaces can make their objects look like children, and change them again
// and again.
func TestChangesOfChildrenInOtherNamespacesCauseFewCalls(t *testing.T) {
	now, state := time.Unix(1_000_000, 0), &reconciled{called: true}
	calls, late := 0, time.Duration(0)
	var woken time.Time // the first change that no call has seen
	for range 60 * 50 { // fifty changes a second
		if state.wakeFar(now); woken.IsZero() {
			woken = now
		}
		if state.isDue(false, now) {
			calls, late, woken = calls+1, max(late, now.Sub(woken)), time.Time{}
			state.dirty, state.due = false, time.Time{}
		}
		now = now.Add(20 * time.Millisecond)
	}
	if calls < farBurst || calls > farBurst+2*60 {
		t.Errorf("%d calls in a minute", calls)
	}
	if late > farPause {
		t.Errorf("a call came %v after the change", late)
	}
	now = now.Add(time.Hour)
	for i := range farBurst {
		state.dirty = false
		if state.wakeFar(now); !state.dirty {
			t.Errorf("after a quiet hour, change %d causes no call at once", i)
		}
	}
}

func TestChangesOfChildrenAreJoinedByTheirDistance(t *testing.T) {
	near, far := &Wake{Owned: []kind.Info{childInfo}}, &Wake{Far: []kind.Info{childInfo}}
	of, err := kind.Parse("example.com/v1/widgets")
	if err != nil {
		t.Fatal(err)
	}
	h := &handler.Handler{ID: "fn", Reconcile: &handler.Reconcile{Owned: []handler.Owned{{Of: of}}}}
	for name, c := range map[string]struct {
		wake      *Wake
		near, far bool
	}{
		"near": {near, true, false}, "far": {far, false, true}, "both": {near.Join(far), true, true}, "all": {(&Wake{All: true}).Join(far), false, true},
		"none": {nil, false, false}, "far twice": {far.Join(far), false, true},
	} {
		if c.wake.concerns(h) != c.near || c.wake.concernsFar(h) != c.far {
			t.Errorf("%s: got %t and %t", name, c.wake.concerns(h), c.wake.concernsFar(h))
		}
	}
}
