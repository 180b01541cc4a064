package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// untraced is a progress storage of a user's own, which does not tell its traces.
type untraced struct{ Progress }

func TestStoragesTellWhereTheirTracesAre(t *testing.T) {
	in := func(path ...string) []string { return path }
	for name, c := range map[string]struct {
		storage any
		want    Traces
		ok      bool
	}{
		"records in annotations":       {NewAnnotationProgress("a.dev"), Traces{Prefixes: []string{"a.dev"}}, true},
		"a base in annotations":        {NewAnnotationBase("a.dev"), Traces{Prefixes: []string{"a.dev"}}, true},
		"records in the status":        {&StatusProgress{Field: in("status", "kopf", "progress"), TouchField: in("status", "touched", "x")}, Traces{Keys: []string{"kopf", "touched"}}, true},
		"records right in the status":  {&StatusProgress{Field: in("status", "kopf"), TouchField: in("status", "touched")}, Traces{Keys: []string{"kopf", "touched"}}, true},
		"records as the whole status":  {&StatusProgress{Field: in("status"), TouchField: in("status", "touched")}, Traces{}, false},
		"records outside the status":   {&StatusProgress{Field: in("spec", "kopf"), TouchField: in("status", "touched")}, Traces{}, false},
		"touches outside the status":   {&StatusProgress{Field: in("status", "kopf"), TouchField: in("spec", "touched")}, Traces{}, false},
		"a base in the status":         {&StatusBase{Field: in("status", "kopf")}, Traces{Keys: []string{"kopf"}}, true},
		"a base as the whole status":   {&StatusBase{Field: in("status")}, Traces{}, false},
		"a base outside of the status": {&StatusBase{Field: in("spec", "kopf")}, Traces{}, false},
		"several": {MultiProgress(NewAnnotationProgress("a.dev"), &StatusProgress{Field: in("status", "kopf"), TouchField: in("status", "kopf")}),
			Traces{Prefixes: []string{"a.dev"}, Keys: []string{"kopf", "kopf"}}, true},
		"several, one unknown": {MultiProgress(untraced{}, NewAnnotationProgress("a.dev")), Traces{Prefixes: []string{"a.dev"}}, false},
		"a user's own":         {untraced{}, Traces{}, false},
		"a retired one":        {retiredProgress{NewAnnotationProgress("a.dev")}, Traces{Prefixes: []string{"a.dev"}}, true},
	} {
		got, ok := traces(c.storage)
		if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok {
			t.Errorf("%s: complete %t, %s", name, ok, diff)
		}
	}
}
