package controller

import (
	"fmt"
	"slices"
	"testing"

	metalabels "k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
)

// queued returns an entry with an event of the object u.
func queued(typ kube.EventType, version string) entry {
	id := object.Identity{Namespace: "ns", Name: "x", UID: "u", ResourceVersion: version}
	return entry{event: &process.Event{Type: typ, Body: id.Stub()}}
}

// describe returns the types and versions of the events of the entries.
func describe(entries []entry) (all []string) {
	for _, e := range entries {
		all = append(all, fmt.Sprint(e.event.Type, " ", e.event.Body.ResourceVersion))
	}
	return all
}

func TestAQueuedDeletionThatOnlyLeftTheSelectionIsReplaced(t *testing.T) {
	const deleted, modified, listed = kube.Deleted, kube.Modified, kube.Listed
	for name, c := range map[string]struct {
		all     bool // no selector
		entries []entry
		want    []string
	}{
		"it returns":                    {false, []entry{queued(deleted, "5"), queued(kube.Added, "6")}, []string{"ADDED 6"}},
		"it leaves and returns":         {false, []entry{queued(modified, "4"), queued(deleted, "5"), queued(kube.Added, "6"), queued(deleted, "7"), queued(kube.Added, "8")}, []string{"ADDED 8"}},
		"it returns and is deleted":     {false, []entry{queued(deleted, "5"), queued(kube.Added, "6"), queued(deleted, "7")}, []string{"DELETED 7"}},
		"without a selector":            {true, []entry{queued(deleted, "5"), queued(modified, "6")}, []string{"DELETED 5", "MODIFIED 6"}},
		"an old state":                  {false, []entry{queued(deleted, "5"), queued(modified, "4")}, []string{"DELETED 5", "MODIFIED 4"}},
		"the same version":              {false, []entry{queued(deleted, "5"), queued(modified, "5")}, []string{"DELETED 5", "MODIFIED 5"}},
		"a list may be stale":           {false, []entry{queued(deleted, "5"), queued(listed, "6")}, []string{"DELETED 5", "LISTED 6"}},
		"versions that are no numbers":  {false, []entry{queued(deleted, "a"), queued(modified, "b")}, []string{"DELETED a", "MODIFIED b"}},
		"a deletion of unknown version": {false, []entry{queued(deleted, ""), queued(modified, "6")}, []string{"DELETED ", "MODIFIED 6"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := &Controller{processor: &process.Processor{}}
			if !c.all {
				k.selector = metalabels.Everything()
			}
			var waiting []entry
			for _, e := range c.entries {
				waiting = k.add(waiting, e)
			}
			if got := describe(waiting); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestADeletionWithoutAUIDIsNotReplaced(t *testing.T) {
	k := &Controller{processor: &process.Processor{}, selector: metalabels.Everything()}
	former, next := queued(kube.Deleted, "5"), queued(kube.Added, "6")
	former.event.Body, next.event.Body = object.Identity{Name: "x", ResourceVersion: "5"}.Stub(), object.Identity{Name: "x", ResourceVersion: "6"}.Stub()
	if got := k.add(k.add(nil, former), next); len(got) != 2 {
		t.Errorf("got %q", describe(got))
	}
}

// Event handlers get all events. If too many wait for them, the number of entries must not grow
// with each time that the object leaves and returns.
func TestAnObjectThatLeavesAndReturnsManyTimesHasFewEntries(t *testing.T) {
	for name, c := range map[string]struct {
		watchers     handler.Set
		leaves, back bool // too much waits when the object leaves, and when it returns
	}{
		"without event handlers":             {nil, false, false},
		"without event handlers, overloaded": {nil, true, true},
		"with event handlers, overloaded":    {handler.Set{{ID: "look"}}, true, true},
		"with event handlers, at the limit":  {handler.Set{{ID: "look"}}, true, false}, // a deletion that was shed makes room
	} {
		t.Run(name, func(t *testing.T) {
			k := &Controller{processor: &process.Processor{Watchers: c.watchers}, selector: metalabels.Everything()}
			add := func(waiting []entry, e entry, full bool) []entry {
				if full {
					return k.merge(waiting, k.shed("u", e, false))
				}
				return k.add(waiting, e)
			}
			waiting, most := []entry{queued(kube.Modified, "1")}, 0
			for version := 2; version < 1000; version += 2 {
				waiting = add(waiting, queued(kube.Deleted, fmt.Sprint(version)), c.leaves)
				most = max(most, len(waiting))
				waiting = add(waiting, queued(kube.Added, fmt.Sprint(version+1)), c.back)
				most = max(most, len(waiting))
			}
			if most > 1 {
				t.Errorf("%d entries wait", most)
			}
			if got := describe(waiting); got[len(got)-1] != "ADDED 999" {
				t.Errorf("the last ones are %q", got)
			}
		})
	}
}
