package process

import (
	"testing"

	"gopf.dev/gopf/internal/object"
)

func bodyAt(version string) *object.Body {
	return &object.Body{Identity: object.Identity{ResourceVersion: version}}
}

func item(version string, list uint64) *Event {
	return &Event{Body: bodyAt(version), Mark: list, List: list}
}

func restored(version string, list uint64) *Event {
	e := item(version, list)
	e.Authoritative = true
	return e
}

func watched(version string, mark uint64) *Event {
	return &Event{Type: "MODIFIED", Body: bodyAt(version), Mark: mark}
}

func TestJoinKeepsTheNewerOfTwoEvents(t *testing.T) {
	for name, c := range map[string]struct {
		first, next *Event
		version     string
		listed      bool
		mark, list  uint64
	}{
		"a change":                          {watched("5", 1), watched("6", 2), "6", false, 2, 0},
		"a replayed event":                  {watched("6", 1), watched("5", 2), "6", false, 2, 0},
		"a change of a list item":           {item("5", 1), watched("6", 2), "6", true, 2, 1},
		"a replayed event after a list":     {item("6", 1), watched("5", 2), "6", true, 2, 1},
		"a list after a change":             {watched("5", 1), item("6", 2), "6", true, 2, 2},
		"a list that began before a change": {watched("6", 2), item("5", 1), "6", true, 2, 1},
		"a list of a restored cluster":      {watched("6", 1), item("5", 2), "5", true, 2, 2},
		"an older list":                     {item("6", 2), item("5", 1), "6", true, 2, 2},
		"a restored cluster, same version":  {watched("6", 1), restored("6", 2), "6", true, 2, 2},
		"an authoritative list, too early":  {watched("6", 2), restored("7", 1), "6", true, 2, 1},
		"no numbers: order of arrival":      {watched("b", 1), watched("a", 2), "a", false, 2, 0},
		"no numbers: a newer list":          {watched("b", 1), item("a", 2), "a", true, 2, 2},
		"no numbers: an older list":         {watched("b", 2), item("a", 1), "b", true, 2, 1},
		"no numbers: a change after a list": {item("b", 1), watched("a", 2), "a", true, 2, 1},
	} {
		got := c.first.Join(c.next)
		if got.Body.ResourceVersion != c.version || got.Listed() != c.listed || got.Mark != c.mark || got.List != c.list {
			t.Errorf("%s: version %s, listed %v, mark %d, list %d", name, got.Body.ResourceVersion, got.Listed(), got.Mark, got.List)
		}
	}
}

// A list item with a lower version than the known one counts only if there was no
// write and no watch event of the object after the list began.
func TestStaleStatesAreIgnored(t *testing.T) {
	at5 := func(mark uint64) *Memory { return &Memory{version: 5, mark: mark} }
	atB := func(mark uint64) *Memory { return &Memory{rare: &rare{version: "b"}, mark: mark} }
	for name, c := range map[string]struct {
		m              *Memory
		e              *Event
		isNew, rewound bool
	}{
		"a newer event":                           {at5(3), watched("6", 4), true, false},
		"an older event":                          {at5(3), watched("4", 4), false, false},
		"a newer list item":                       {at5(3), item("6", 2), true, false},
		"an older item of a newer list":           {at5(3), item("4", 4), false, true},
		"an older item of an older list":          {at5(3), item("4", 2), false, false},
		"the same version":                        {at5(3), item("5", 4), false, false},
		"the same version after a restore":        {at5(3), restored("5", 4), false, true},
		"the same version, written after it":      {at5(5), restored("5", 4), false, false},
		"a change of a rewound list item":         {at5(3), item("3", 4).Join(watched("4", 6)), false, true},
		"no numbers: another event":               {atB(3), watched("a", 4), true, false},
		"no numbers: the same event":              {atB(3), watched("b", 4), false, false},
		"no numbers: a newer list":                {atB(3), item("a", 4), true, true},
		"no numbers: a list from before":          {atB(3), item("a", 2), false, false},
		"no numbers: a change after an old list":  {atB(3), item("c", 2).Join(watched("a", 4)), true, false},
		"no numbers: nothing but the list before": {&Memory{}, item("a", 2), true, true},
	} {
		if isNew, rewound := c.m.isNew(c.e), c.m.rewound(c.e); isNew != c.isNew || rewound != c.rewound {
			t.Errorf("%s: isNew %v, rewound %v", name, isNew, rewound)
		}
	}
}
