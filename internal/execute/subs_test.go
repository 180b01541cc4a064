package execute

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/test/scaling"
	"gopf.dev/gopf/storage"
)

// parentOf returns a handler that runs the sub-handlers, and returns their error.
func parentOf(id string, subs ...*handler.Handler) *handler.Handler {
	return newHandler(id, func(ctx context.Context, r *handler.Request) error {
		return r.RunSubs(ctx, subs, handler.SubOptions{})
	})
}

func TestManySubHandlersCauseAWarning(t *testing.T) {
	for n, warned := range map[int]bool{899: false, 900: true} {
		var subs []*handler.Handler
		for i := range n {
			subs = append(subs, newHandler(fmt.Sprint("p/", i), func(context.Context, *handler.Request) error { return nil }))
		}
		declared := handler.Set{parentOf("p", subs...)}
		r := newRunner(declared)
		var log bytes.Buffer
		r.Log = printed(&log)
		if err := r.Pass(t.Context(), declared); err != nil || r.Ran() != n+1 {
			t.Fatalf("%d ran, %v", r.Ran(), err)
		}
		line := fmt.Sprintf("handler=p sub-handlers=%d\n", n)
		if strings.Contains(log.String(), "level=WARN") != warned || strings.Contains(log.String(), line) != warned {
			t.Errorf("%d sub-handlers: warned %v", n, !warned)
		}
	}
}

func TestRecordsOfSubHandlersAreLoaded(t *testing.T) {
	renamed := asking("p/new", nil)
	renamed.Formerly = []string{"p/old"}
	declared := handler.Set{parentOf("p", asking("p/done", nil), renamed, asking("p/open", nil))}
	r := newRunner(declared)
	var asked []string
	done := storage.Record{Success: true, Purpose: "create", Started: time.Now()}
	r.Load = func(_ context.Context, ids []string) (map[string]storage.Record, error) {
		asked = ids
		return map[string]storage.Record{"p/done": done, "p/old": done}, nil
	}
	if err := r.Pass(t.Context(), declared); err != nil {
		t.Fatal(err)
	}
	if got := r.Finished(); !slices.Equal(got, []string{"p/open", "p"}) || !slices.Contains(asked, "p/done") {
		t.Errorf("called are %q, asked for %q", got, asked)
	}
}

func TestAHandlerLearnsThatItsSubHandlersCannotBeLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("the storage is down")
		var outer, inner error
		declared := handler.Set{newHandler("p", func(ctx context.Context, r *handler.Request) error {
			sub := newHandler("p/a", func(ctx context.Context, r *handler.Request) error {
				inner = r.RunSubs(ctx, []*handler.Handler{asking("p/a/b", nil)}, handler.SubOptions{})
				return nil
			})
			outer = r.RunSubs(ctx, []*handler.Handler{sub}, handler.SubOptions{})
			return nil
		})}
		r := newRunner(declared)
		r.Load = func(_ context.Context, ids []string) (map[string]storage.Record, error) {
			if slices.Contains(ids, "p/a/b") {
				return nil, down
			}
			return nil, nil
		}
		if err := r.Pass(t.Context(), declared); !errors.Is(err, down) || !errors.Is(inner, down) || !errors.Is(outer, down) {
			t.Errorf("the pass got %v, the handlers got %v and %v", err, outer, inner)
		}
		if delay := r.State.Delay([]string{"p", "p/a"}, time.Now()); delay != some(0) {
			t.Errorf("the handlers are not due at once, but after %v", delay)
		}
	})
}

func TestRunSubsReportsTheTimeUntilTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got error
		failure := &handler.TemporaryError{Err: errors.New("x"), Delay: handler.Some(5 * time.Second)}
		declared := handler.Set{newHandler("p", func(ctx context.Context, r *handler.Request) error {
			got = r.RunSubs(ctx, []*handler.Handler{asking("p/a", failure)}, handler.SubOptions{})
			return nil
		})}
		r := newRunner(declared)
		if err := r.Pass(t.Context(), declared); err != nil {
			t.Fatal(err)
		}
		if unfinished, ok := errors.AsType[*handler.UnfinishedError](got); !ok || unfinished.Delay != 5*time.Second {
			t.Errorf("the handler got %v", got)
		}
		if delay := r.State.Delay([]string{"p"}, time.Now()); delay.Is != 5*time.Second {
			t.Errorf("the parent waits for %v", delay)
		}
	})
}

func TestARefusedChangeReopensOnlyFinishedParentsOfHandlersThatAreRetried(t *testing.T) {
	for name, c := range map[string]struct {
		refusal error
		open    bool // another sub-handler of the middle handler is unfinished
		retries map[string]int
		done    map[string]bool
	}{
		"retried":                 {errors.New("x"), false, map[string]int{"p": 1, "p/m": 1, "p/m/s": 1}, map[string]bool{}},
		"failed permanently":      {&handler.PermanentError{Err: errors.New("x")}, false, map[string]int{"p": 1, "p/m": 1, "p/m/s": 1}, map[string]bool{"p": true, "p/m": true, "p/m/s": true}},
		"parents were unfinished": {errors.New("x"), true, map[string]int{"p": 1, "p/m": 1, "p/m/s": 1}, map[string]bool{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				subs := []*handler.Handler{asking("p/m/s", nil)}
				if c.open {
					subs = append(subs, asking("p/m/t", errors.New("y")))
				}
				declared := handler.Set{parentOf("p", parentOf("p/m", subs...))}
				r := newRunner(declared)
				if err := r.Pass(t.Context(), declared); err != nil || r.State.Record("p").Finished() == c.open {
					t.Fatalf("got %+v, %v", r.State.Record("p"), err)
				}
				before := r.State.Record("p")
				r.Parts(declared)[0].Refuse(c.refusal)
				for id, retries := range c.retries {
					if record := r.State.Record(id); record.Retries != retries || record.Finished() != c.done[id] {
						t.Errorf("%s: got %+v", id, record)
					}
				}
				if c.open && !r.State.Record("p").Equal(before) {
					t.Errorf("the record of an unfinished parent has changed: %+v", r.State.Record("p"))
				}
				if !c.open && !c.done["p"] && r.State.Delay([]string{"p"}, time.Now()).Is != time.Minute {
					t.Errorf("the parent waits for %v", r.State.Delay([]string{"p"}, time.Now()))
				}
			})
		})
	}
}

// The number of sub-handlers may come from the object. Every pass looks at all of them.
func TestPassesOverChainsOfSubHandlers(t *testing.T) {
	for name, depend := range map[string]func(ids []string) []string{
		"each on the one before": func(ids []string) []string { return ids[max(0, len(ids)-1):] },
		"each on all before":     slices.Clip[[]string],
	} {
		t.Run(name, func(t *testing.T) {
			scaling.Check(t, 100, func(n int) {
				var subs []*handler.Handler
				var ids []string
				for i := range n {
					sub := asking(fmt.Sprint("p/", i), nil)
					sub.DependsOn = depend(ids)
					subs, ids = append(subs, sub), append(ids, sub.ID)
				}
				declared := handler.Set{parentOf("p", subs...)}
				r := newRunner(declared)
				r.Load = func(context.Context, []string) (map[string]storage.Record, error) {
					return map[string]storage.Record{"p/0": {Success: true, Purpose: "create"}, "p/1": {Success: true, Purpose: "create"}}, nil
				}
				if err := r.Pass(t.Context(), declared); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(r.Finished(), []string{"p/2"}) {
					t.Errorf("called are %q, want p/2", r.Finished())
				}
			})
		})
	}
}
