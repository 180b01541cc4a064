package pathcheck

import (
	"fmt"
	"slices"
	"testing"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
)

func TestUsedPathsAreGroupedByResource(t *testing.T) {
	pods, nodes := kind.Info{Version: "v1", Plural: "pods", Kind: "Pod"}, kind.Info{Version: "v1", Plural: "nodes", Kind: "Node"}
	things := []kind.Info{{Group: "a.dev", Version: "v1", Plural: "things", Kind: "Thing", Preferred: true}, {Group: "b.dev", Version: "v1", Plural: "things", Kind: "Thing", Preferred: true}}
	of := func(name string) kind.Selector {
		s, err := kind.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	fields := handler.Criteria{Fields: []handler.Field{{Path: []string{"spec", "a"}}, {Path: []string{"spec", "b"}, Doubt: "really?"}}}
	change := &handler.Change{Path: []string{"spec", "b"}}
	used := usedPaths(handler.Set{
		{ID: "change", Of: of("v1/pods"), Change: change},
		{ID: "filter", Of: of("v1/pods"), Criteria: fields},
		{ID: "nothing", Of: of("v1/pods")},
		{ID: "other", Of: of("v1/nodes"), Change: change},
		{ID: "missing", Of: of("v1/services"), Change: change},
		{ID: "pattern", Of: kind.Everything(), Change: change},
		{ID: "ambiguous", Of: of("things"), Change: change},
		{ID: "review", Of: of("v1/nodes"), Change: change, Admission: &handler.Admission{}},
		{ID: "scale", Of: of("v1/nodes"), Change: change, Admission: &handler.Admission{Subresource: "scale"}},
	}, append(things, pods, nodes))
	var got []string
	for _, u := range used {
		for _, p := range u.paths {
			got = append(got, fmt.Sprintf("%s %s %v %s", u.info, p.Keys, p.Handlers, p.Doubt))
		}
	}
	want := []string{"pods.v1 spec.b [change filter] really?", "pods.v1 spec.a [filter] ", "nodes.v1 spec.b [other review] "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
