package children_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/children"
)

const owner = "11111111-2222-3333-4444-555555555555"

func key(name string) children.Key {
	return children.Key{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
}

func TestDecisionsAboutOneChild(t *testing.T) {
	const uid = "abcdef01-0000-0000-0000-000000000000"
	live := children.Live{Exists: true, UID: uid, Stamp: 7, Relation: children.Own}
	known := &children.Entry{Key: key("a"), UID: "abcdef01", Stamp: 7, Digest: 1}
	with := func(change func(*children.Live)) children.Live { l := live; change(&l); return l }
	for name, c := range map[string]struct {
		desired children.Desired
		live    children.Live
		known   *children.Entry
		waiting string
		want    children.Verb
	}{
		"as declared":                    {children.Desired{Digest: 1}, live, known, "", children.Keep},
		"as declared, dependency broken": {children.Desired{Digest: 1}, live, known, "b", children.Keep},
		"new":                            {children.Desired{Digest: 1}, children.Live{}, nil, "", children.Create},
		"new, dependency not ready":      {children.Desired{Digest: 1}, children.Live{}, nil, "b", children.Wait},
		"changed":                        {children.Desired{Digest: 2}, live, known, "", children.Change},
		"changed, dependency not ready":  {children.Desired{Digest: 2}, live, known, "b", children.Wait},
		"edited by another client":       {children.Desired{Digest: 1}, with(func(l *children.Live) { l.Stamp = 8 }), known, "b", children.Repair},
		"deleted by another client":      {children.Desired{Digest: 1}, children.Live{}, known, "b", children.Repair},
		"replaced by another client":     {children.Desired{Digest: 1}, with(func(l *children.Live) { l.UID = "0" + uid[1:] }), known, "", children.Repair},
		"not in the inventory":           {children.Desired{Digest: 1}, live, nil, "", children.Change},
		"being deleted":                  {children.Desired{Digest: 1}, with(func(l *children.Live) { l.Deleting = true }), known, "", children.Wait},
		"foreign":                        {children.Desired{Digest: 1}, with(func(l *children.Live) { l.Relation = children.Unowned }), nil, "", children.Refuse},
		"adopted":                        {children.Desired{Digest: 1, AdoptExisting: true}, with(func(l *children.Live) { l.Relation = children.Unowned }), nil, "", children.Change},
		"controlled by another object":   {children.Desired{Digest: 1, AdoptExisting: true}, with(func(l *children.Live) { l.Relation = children.OfAnother }), nil, "", children.Refuse},
		"create only, changed":           {children.Desired{Digest: 2, CreateOnly: true}, with(func(l *children.Live) { l.Stamp = 8 }), known, "", children.Keep},
		"create only, deleted":           {children.Desired{Digest: 1, CreateOnly: true}, children.Live{}, known, "", children.Create},
	} {
		t.Run(name, func(t *testing.T) {
			c.desired.Key = key("a")
			got := children.Decide(c.desired, c.live, c.known, c.waiting)
			if got.Verb != c.want || (got.Reason == "") != (c.want == children.Keep) {
				t.Errorf("got %s (%q), want %s", got.Verb, got.Reason, c.want)
			}
		})
	}
}

func TestPruningDeletesTheHighestWaveFirst(t *testing.T) {
	known := []children.Entry{
		{Key: key("base")}, {Key: key("middle"), Wave: 1}, {Key: key("top"), Wave: 2}, {Key: key("kept"), Wave: 3},
		{Key: key("orphan"), Wave: 9, Orphan: true}, {Key: key("last"), Wave: 5, Last: true},
	}
	desired := []children.Desired{{Key: key("kept")}}
	gone := map[string]bool{}
	names := func(all []children.Entry) (names []string) {
		for _, e := range all {
			names = append(names, e.Name)
		}
		return names
	}
	var order [][]string
	for range 4 {
		now, rest := children.Prune(known, desired, func(e children.Entry) bool { return !gone[e.Name] }, false)
		if !slices.Contains(names(rest), "last") {
			t.Error("the child that is deleted last does not stay in the inventory")
		}
		order = append(order, names(now))
		for _, e := range now {
			gone[e.Name] = true
		}
	}
	if diff := cmp.Diff([][]string{{"top"}, {"middle"}, {"base"}, nil}, order); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if now, _ := children.Prune(known, desired, func(e children.Entry) bool { return !gone[e.Name] }, true); !slices.Equal(names(now), []string{"last"}) {
		t.Errorf("when all others are ready, %q are deleted", names(now))
	}
}

func TestFinalizerIsNeededForOrderAndForChildrenWithoutOwnerReference(t *testing.T) {
	for name, c := range map[string]struct {
		entries []children.Entry
		want    bool
	}{
		"none":               {nil, false},
		"independent":        {[]children.Entry{{Key: key("a")}, {Key: key("b")}}, false},
		"dependent":          {[]children.Entry{{Key: key("a")}, {Key: key("b"), Wave: 1}}, true},
		"outside":            {[]children.Entry{{Key: key("a"), Outside: true}}, true},
		"outside but orphan": {[]children.Entry{{Key: key("a"), Outside: true, Orphan: true}}, false},
	} {
		if got := children.NeedsFinalizer(c.entries); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestInventoriesSurviveTheirEncoding(t *testing.T) {
	v := &children.Inventory{Owner: owner, Entries: []children.Entry{
		{Key: key("a"), UID: "abcdef01", Stamp: 1 << 31, Digest: 7},
		{Key: children.Key{APIVersion: "v1", Kind: "Secret", Namespace: "other", Name: "b.c"}, Wave: 2, Outside: true, Orphan: true, Last: true},
		{Key: children.Key{APIVersion: "v1", Kind: "Namespace", Name: "n"}, UID: "00000001", Outside: true},
		{Key: children.Key{APIVersion: "v1", Kind: "Secret", Name: "ten"}, UID: "00000001", Wave: 10},
	}}
	text, err := v.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := children.Decode(text, owner)
	if diff := cmp.Diff(v, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
}

func TestInventoriesAreSmallAndBounded(t *testing.T) {
	many := func(n int) *children.Inventory {
		v := &children.Inventory{Owner: owner}
		for i := range n {
			v.Entries = append(v.Entries, children.Entry{Key: key(fmt.Sprintf("%-20d", i)), UID: fmt.Sprintf("%08x", i*7919+1), Stamp: uint32(i * 104729), Digest: uint32(i * 1299709)})
			v.Entries[i].Name = strings.ReplaceAll(v.Entries[i].Name, " ", "x")
		}
		return v
	}
	if text, err := many(100).Encode(); err != nil || len(text) > 100*48 {
		t.Errorf("100 children take %d bytes: %v", len(text), err)
	}
	text, err := many(children.MaxEntries).Encode()
	if got, wrong := children.Decode(text, owner); err != nil || wrong != nil || len(got.Entries) != children.MaxEntries || !strings.HasPrefix(text, "gz:") {
		t.Errorf("the largest inventory: %v, %v", err, wrong)
	}
	if _, err := many(children.MaxEntries + 1).Encode(); err == nil {
		t.Error("too many children cause no error")
	}
}

func TestAnInventoryNamesEachChildOnce(t *testing.T) {
	forged := &children.Inventory{Owner: owner, Entries: []children.Entry{{Key: key("a"), UID: "abcdef01"}, {Key: key("b")}, {Key: key("a"), UID: "abcdef02"}}}
	text, err := forged.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := children.Decode(text, owner)
	if err != nil || len(got.Entries) != 2 || got.Entries[0].UID != "abcdef01" {
		t.Errorf("got %v, %v", got.Entries, err)
	}
}

func TestUnreadableInventoriesCountAsEmpty(t *testing.T) {
	good, err := (&children.Inventory{Owner: owner, Entries: []children.Entry{{Key: key("a"), UID: "abcdef01"}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"truncated":             good[:len(good)-3],
		"of another version":    "2" + good[1:],
		"of another object":     strings.Replace(good, "11111111", "99999999", 1),
		"with an unknown kind":  strings.Replace(good, ";0/", ";7/", 1),
		"with a negative wave":  good + "/-1",
		"without entries":       "1;11111111;;",
		"compressed but broken": "gz:AAAA",
		"something else":        "hello",
	} {
		got, err := children.Decode(text, owner)
		if !errors.Is(err, children.ErrInventory) || len(got.Entries) != 0 {
			t.Errorf("%s: %v, %v", name, got.Entries, err)
		}
	}
}

func TestStampsChangeOnlyWithTheFieldsOfTheManager(t *testing.T) {
	entry := func(manager, at, fields string) children.ManagedFields {
		return children.ManagedFields{Manager: manager, Operation: "Apply", Time: at, FieldsV1: json.RawMessage(fields)}
	}
	ours := entry("us", "1", `{"f:a":{}}`)
	base, found := children.Stamp([]children.ManagedFields{ours}, "us")
	if !found {
		t.Error("the entry is not found")
	}
	for name, c := range map[string]struct {
		entries []children.ManagedFields
		same    bool
	}{
		"another manager":       {[]children.ManagedFields{entry("other", "2", `{"f:b":{}}`), ours}, true},
		"the status":            {[]children.ManagedFields{ours, {Manager: "us", Subresource: "status", Time: "3"}}, true},
		"a field was taken":     {[]children.ManagedFields{entry("us", "1", `{}`)}, false},
		"a write in our name":   {[]children.ManagedFields{entry("us", "2", `{"f:a":{}}`)}, false},
		"an update in our name": {[]children.ManagedFields{ours, {Manager: "us", Operation: "Update", Time: "2", FieldsV1: json.RawMessage(`{"f:b":{}}`)}}, false},
		"no entry":              {nil, false},
	} {
		if got, _ := children.Stamp(c.entries, "us"); (got == base) != c.same {
			t.Errorf("%s: same stamp: %v", name, got == base)
		}
	}
}

func TestConditionsKeepTheirTransitionTime(t *testing.T) {
	o := map[string]any{}
	at := func(s int) time.Time { return time.Date(2030, 1, 1, 0, 0, s, 0, time.UTC) }
	set := func(status bool, message string, s int) map[string]any {
		children.SetCondition(o, children.Condition{Type: "Ready", Status: status, Reason: "R", Message: message, Generation: 3}, at(s))
		return o["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)
	}
	if c := set(false, "a", 1); c["status"] != "False" || c["lastTransitionTime"] != "2030-01-01T00:00:01Z" || c["observedGeneration"] != int64(3) {
		t.Errorf("a new condition: %v", c)
	}
	if c := set(false, "b", 2); c["message"] != "b" || c["lastTransitionTime"] != "2030-01-01T00:00:01Z" {
		t.Errorf("the same status: %v", c)
	}
	if c := set(true, "b", 3); c["lastTransitionTime"] != "2030-01-01T00:00:03Z" {
		t.Errorf("another status: %v", c)
	}
	children.RemoveCondition(o, "Ready")
	if left := o["status"].(map[string]any)["conditions"].([]any); len(left) != 0 {
		t.Errorf("after the removal: %v", left)
	}
}
