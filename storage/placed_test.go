package storage

import "testing"

func TestSeveralStoragesAreInTheStatusIfAllThatSaveAre(t *testing.T) {
	status, annotations := NewStatusProgress("op"), NewAnnotationProgress("example.com")
	for name, c := range map[string]struct {
		storages []Progress
		want     bool
	}{
		"the status":                          {[]Progress{status}, true},
		"the status twice":                    {[]Progress{status, NewStatusProgress("other")}, true},
		"annotations":                         {[]Progress{annotations}, false},
		"both":                                {[]Progress{status, annotations}, false},
		"the status and retired annotations":  {[]Progress{status, RetiredProgress(annotations)}, true},
		"annotations and a retired status":    {[]Progress{annotations, RetiredProgress(status)}, false},
		"retired storages only":               {[]Progress{RetiredProgress(status)}, false},
		"the status and one of unknown place": {[]Progress{status, unplaced{status}}, false},
	} {
		if got := MultiProgress(c.storages...).(Placed).InStatus(); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

// unplaced hides where a storage keeps its records.
type unplaced struct{ Progress }
