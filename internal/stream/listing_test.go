package stream

import (
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/object"
)

func TestObjectsMissingInAList(t *testing.T) {
	cases := map[string]struct {
		known, seen, gone []string // name/uid
		wantReplaced      []string
		wantMissing       []string
	}{
		"nothing known":            {seen: []string{"a/1"}},
		"all listed":               {known: []string{"a/1", "b/2"}, seen: []string{"b/2", "a/1"}},
		"some missing":             {known: []string{"a/1", "b/2"}, seen: []string{"b/2"}, wantMissing: []string{"a/1"}},
		"replaced":                 {known: []string{"a/1"}, seen: []string{"a/2"}, wantReplaced: []string{"a/1"}},
		"deleted after its item":   {known: []string{"a/1", "b/2"}, seen: []string{"a/1", "b/2"}, gone: []string{"a/1"}},
		"deleted without an item":  {known: []string{"a/1", "b/2"}, seen: []string{"b/2"}, gone: []string{"a/1"}},
		"another one was deleted":  {known: []string{"a/1"}, gone: []string{"a/2"}, wantMissing: []string{"a/1"}},
		"several of one name":      {known: []string{"a/1", "a/2", "a/3"}, seen: []string{"a/2"}, wantMissing: []string{"a/1", "a/3"}},
		"several, and a new one":   {known: []string{"a/1", "a/2"}, seen: []string{"a/3"}, wantReplaced: []string{"a/1"}, wantMissing: []string{"a/2"}},
		"several, one was deleted": {known: []string{"a/1", "a/2"}, gone: []string{"a/2"}, wantMissing: []string{"a/1"}},
		"known twice":              {known: []string{"a/1", "a/1"}, wantMissing: []string{"a/1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newListing(func() iter.Seq[object.Identity] { return slices.Values(known(c.known...)) })
			var replaced, missing []string
			for _, id := range known(c.seen...) {
				if former, ok := l.saw(id); ok {
					replaced = append(replaced, former.Name+"/"+former.UID)
				}
			}
			for _, id := range known(c.gone...) {
				l.gone(id)
			}
			for id := range l.missing() {
				missing = append(missing, id.Name+"/"+id.UID)
			}
			slices.Sort(missing)
			if diff := cmp.Diff(c.wantReplaced, replaced); diff != "" {
				t.Errorf("replaced: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(c.wantMissing, missing); diff != "" {
				t.Errorf("missing: -want +got\n%s", diff)
			}
		})
	}
}
