package faults_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// In a gap of the stream objects go, come, and come again by the same name; then
// the server does not have the version any more from which to go on.
func TestWhatHappensInAGapIsFoundOut(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]effect{
		"410 as an answer":  answers(410),
		"410 in the stream": func(x *exchange) { events(breaking(0, errorEvent(410)))(x) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			op, n := gopf.New(), &notes{calls: map[string][]string{}, events: map[string][]string{}}
			x := gopf.For[*Patient](op, "faults.gopf.dev/v1/"+patients)
			n.index = gopf.Index(x, "fields", func(_ context.Context, s *gopf.Subject[*Patient]) (map[string]string, error) {
				return map[string]string{s.Object.Name: s.Object.Spec.Field}, nil
			})
			x.OnEvent("look", func(_ context.Context, e *gopf.WatchEvent[*Patient]) error {
				if e.Type == "DELETED" && !e.Missed {
					t.Errorf("the deletion of %s was seen", e.Object.Name)
				}
				n.event(e)
				return nil
			})
			o := run(newSpace(t, cluster), newProxy(t, cluster), op, n)
			o.following(patients)
			for _, name := range []string{"goes", "stays", "changes", "again"} {
				o.space.create(name, "v1")
			}
			kit.Eventually(t, o.indexIs(map[string]string{"goes": "v1", "stays": "v1", "changes": "v1", "again": "v1"}))

			gap := o.proxy.strike(watches, answers(503))
			o.proxy.cutStreams(patients)
			o.space.delete("goes")
			o.space.delete("again")
			o.space.create("again", "v2")
			o.space.create("comes", "v2")
			o.space.change("changes", "v2")
			o.proxy.strike(watches, after).first(1)
			gap.end()
			began := time.Now()
			kit.Eventually(t, o.indexIs(map[string]string{"stays": "v1", "changes": "v2", "again": "v2", "comes": "v2"}))
			kit.Eventually(t, func() error {
				for name, last := range map[string]string{"goes": "DELETED ", "comes": " v2", "changes": " v2"} {
					if told := n.eventsOf(name); len(told) == 0 || told[len(told)-1] != last {
						return fmt.Errorf("of %s was told %q", name, told)
					}
				}
				// Two objects of one name have nothing to do with each other.
				for _, event := range []string{"DELETED ", " v2"} {
					if told := n.eventsOf("again"); !slices.Contains(told, event) {
						return fmt.Errorf("of those named again was told %q", told)
					}
				}
				return nil
			})
			if took := time.Since(began); took > soon {
				t.Errorf("it took %v", took)
			}
			o.proxy.checkStruck(t)
		})
	}
}

func (o *operator) indexIs(want map[string]string) func() error {
	return func() error {
		if got := o.notes.indexed(); !maps.Equal(got, want) {
			return fmt.Errorf("in the index is %v, want %v", got, want)
		}
		return nil
	}
}

// The operator is told of an older state after a newer one, and of nothing else:
// what it knows must not go back.
func TestOldNewsDoNotReplaceNewerOnes(t *testing.T) {
	t.Parallel()
	o := admit(t)
	o.proxy.strike(watches, events(haunted))
	o.proxy.cutStreams(patients)
	o.space.do(creation)
	if err := o.settles(creation, soon); err != nil {
		t.Fatal(err)
	}
	o.space.change("x", "v2")
	o.space.change("x", "v3")
	kit.Eventually(t, func() error {
		if p := o.space.get("x"); p.Annotations[lastHandled] != `{"spec":{"field":"v3"}}`+"\n" {
			return fmt.Errorf("the annotations are %q", p.Annotations)
		}
		return nil
	})
	time.Sleep(calm)
	if err := o.indexIs(map[string]string{"x": "v3", "y": "v1", "z": "v1"})(); err != nil {
		t.Error(err)
	}
	o.proxy.checkStruck(t)
}
