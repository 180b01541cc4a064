package cause

import "testing"

func TestDetect(t *testing.T) {
	cases := map[string]struct {
		facts   Facts
		reason  Reason
		initial bool
	}{
		"a new object":                            {Facts{}, Create, false},
		"a listed object that was never handled":  {Facts{Initial: true}, Create, false},
		"a changed object":                        {Facts{Known: true, Changed: true}, Update, false},
		"a listed object that has changed":        {Facts{Known: true, Changed: true, Initial: true}, Update, true},
		"a listed object":                         {Facts{Known: true, Initial: true}, Resume, true},
		"an unchanged object":                     {Facts{Known: true}, Noop, false},
		"deleting, with our finalizer":            {Facts{Deleting: true, Blocked: true, Known: true, Changed: true}, Delete, false},
		"listed, deleting, with our finalizer":    {Facts{Deleting: true, Blocked: true, Initial: true}, Delete, true},
		"deleting, without our finalizer":         {Facts{Deleting: true, Known: true}, Free, false},
		"listed, deleting, without our finalizer": {Facts{Deleting: true, Known: true, Initial: true}, Free, true},
		"our finalizer without a deletion":        {Facts{Blocked: true, Known: true}, Noop, false},
		"a deleted object":                        {Facts{Gone: true, Deleting: true, Blocked: true}, Gone, false},
		"a deleted object from a list":            {Facts{Gone: true, Initial: true}, Gone, true},
	}
	for name, c := range cases {
		if reason, initial := Detect(c.facts); reason != c.reason || initial != c.initial {
			t.Errorf("%s: got %s, %v, want %s, %v", name, reason, initial, c.reason, c.initial)
		}
	}
}

func TestReasonTitles(t *testing.T) {
	cases := map[Reason]struct {
		handled bool
		title   string
	}{
		Create: {true, "Creation"}, Update: {true, "Updating"}, Delete: {true, "Deletion"}, Resume: {true, "Resuming"},
		Noop: {false, "noop"}, Free: {false, "free"}, Gone: {false, "gone"},
	}
	for reason, c := range cases {
		if reason.Handled() != c.handled || reason.Title() != c.title {
			t.Errorf("%s: got %v, %q, want %v, %q", reason, reason.Handled(), reason.Title(), c.handled, c.title)
		}
	}
}
