package process

import (
	"fmt"
	"slices"
	"testing"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/handler"
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
