package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/kind"
)

type fields = map[string]any

// Records must never be stored before the changes that they confirm.
func TestPlanSendsRecordsLast(t *testing.T) {
	main, result, record, inStatus := fields{"spec": fields{"a": "1"}}, fields{"status": fields{"fn": "r"}}, fields{"metadata": fields{"annotations": fields{"r": "1"}}}, fields{"status": fields{"progress": "1"}}
	type sent struct {
		Subresource string
		Fields      fields
		Asked       bool
		Finalizer   bool
	}
	for name, c := range map[string]struct {
		asked, notes []fields
		finalizer    Finalizer
		subresource  bool // the status is a subresource
		want         []sent
	}{
		"nothing":                          {nil, nil, Finalizer{}, true, nil},
		"without a status subresource":     {[]fields{main, result}, []fields{record}, Finalizer{Add: true}, false, []sent{{"", fields{"spec": fields{"a": "1"}, "status": fields{"fn": "r"}, "metadata": record["metadata"]}, true, true}}},
		"a record only":                    {nil, []fields{record}, Finalizer{}, true, []sent{{"", record, false, false}}},
		"a result only":                    {[]fields{result}, nil, Finalizer{}, true, []sent{{"status", result, true, false}}},
		"a result and a record beside it":  {[]fields{result}, []fields{inStatus}, Finalizer{}, true, []sent{{"status", fields{"status": fields{"fn": "r", "progress": "1"}}, true, false}}},
		"a result before its record":       {[]fields{result}, []fields{record}, Finalizer{}, true, []sent{{"status", result, true, false}, {"", record, false, false}}},
		"a change with its record":         {[]fields{main}, []fields{record}, Finalizer{}, true, []sent{{"", fields{"spec": fields{"a": "1"}, "metadata": record["metadata"]}, true, false}}},
		"a record in the status, at last":  {[]fields{main, result}, []fields{inStatus}, Finalizer{}, true, []sent{{"status", result, true, false}, {"", main, true, false}, {"status", inStatus, false, false}}},
		"a finalizer with its record":      {nil, []fields{record}, Finalizer{Remove: true}, true, []sent{{"", record, false, true}}},
		"a finalizer, status records last": {nil, []fields{inStatus}, Finalizer{Add: true}, true, []sent{{"", nil, false, true}, {"status", inStatus, false, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := Applier{Resource: kind.Info{Plural: "claims"}}
			if c.subresource {
				a.Resource.Subresources = []string{"status"}
			}
			var asked, notes patch.Patch
			for _, f := range c.asked {
				asked.Merge(f)
			}
			for _, f := range c.notes {
				notes.Merge(f)
			}
			var got []sent
			for _, s := range a.plan(&asked, &notes, c.finalizer) {
				if s.needed() {
					got = append(got, sent{s.subresource, s.fields, s.asked, s.finalizer.Add || s.finalizer.Remove})
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
