package childwatch

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

var configs = kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}

const (
	ownerA = "aaaaaaaa-0000-0000-0000-000000000000"
	ownerB = "bbbbbbbb-0000-0000-0000-000000000000"
)

func store() *Store {
	mark := uint64(0)
	return NewStore("op", func() uint64 { mark++; return mark })
}

// state is one version of the config map "a".
type state struct {
	uid     string // "" means "u1"
	version int
	owner   string
	data    string
	fields  string // of the operator; "" means that the operator has not applied it
	other   string // fields of another manager
}

// child returns the state as a child.
func (w state) child(t *testing.T, s *Store) *Child {
	t.Helper()
	if w.uid == "" {
		w.uid = "u1"
	}
	var managed []string
	for manager, fields := range map[string]string{"op": w.fields, "another": w.other} {
		if fields != "" {
			managed = append(managed, fmt.Sprintf(`{"manager": %q, "operation": "Apply", "fieldsV1": {%q: {}}}`, manager, fields))
		}
	}
	body, err := object.ParseWhole(fmt.Appendf(nil, `{"metadata": {"namespace": "ns", "name": "a", "uid": %q, "resourceVersion": "%d",
		"ownerReferences": [{"uid": "noise"}, {"uid": %q, "controller": true}], "managedFields": [%s]}, "data": {"key": %q}}`,
		w.uid, w.version, w.owner, strings.Join(managed, ","), w.data))
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Read(configs, body)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChildrenAreReadWithTheirOwners(t *testing.T) {
	annotated := `"annotations": {"gopf.dev/owner": "v1|Owner|ns|o|` + ownerB + `"}`
	reference := `"ownerReferences": [{"uid": "noise"}, {"uid": "` + ownerA + `", "controller": true}]`
	for name, test := range map[string]struct {
		metadata          string
		controller, owner string
		finalized         bool
		deleting          bool
		applied           bool
	}{
		"no owner":                     {metadata: `"labels": {}`},
		"owner reference":              {metadata: reference, controller: ownerA, owner: ownerA},
		"reference without controller": {metadata: `"ownerReferences": [{"uid": "` + ownerA + `"}]`},
		"annotation":                   {metadata: annotated, owner: ownerB},
		"both: the reference counts":   {metadata: annotated + "," + reference, controller: ownerA, owner: ownerA},
		"annotation with few parts":    {metadata: `"annotations": {"gopf.dev/owner": "v1|Owner|` + ownerB + `"}`},
		"annotation with many parts":   {metadata: `"annotations": {"gopf.dev/owner": "v1|Owner|ns|o|x|` + ownerB + `"}`},
		"finalizers":                   {metadata: `"finalizers": ["f"]`, finalized: true},
		"being deleted":                {metadata: `"deletionTimestamp": "2020-01-01T00:00:00Z"`, deleting: true},
		"applied":                      {metadata: `"managedFields": [{"manager": "op"}]`, applied: true},
		"applied by another manager":   {metadata: `"managedFields": [{"manager": "other"}]`},
	} {
		body, err := object.ParseWhole([]byte(`{"metadata": {"namespace": "ns", "name": "a", "uid": "u1", ` + test.metadata + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		c, err := store().Read(configs, body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.Controller != test.controller || c.Owner != test.owner || c.Finalized != test.finalized || c.Deleting != test.deleting || c.Applied != test.applied {
			t.Errorf("%s: got %+v", name, c)
		}
		if want := (children.Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"}); c.Key != want || c.Body().Kind != "ConfigMap" {
			t.Errorf("%s: got the key %+v and the kind %q, want %+v", name, c.Key, c.Body().Kind, want)
		}
	}
}

func TestOwnerAnnotationNamesTheUID(t *testing.T) {
	for orphan, want := range map[bool]string{false: "example.com/v1|Owner|ns|o|" + ownerA, true: "example.com/v1|Owner|ns|o|" + ownerA + "|orphan"} {
		text := OwnerText(kind.Info{Group: "example.com", Version: "v1", Kind: "Owner"}, object.Identity{Namespace: "ns", Name: "o", UID: ownerA}, orphan)
		if text != want {
			t.Errorf("got %q, want %q", text, want)
		}
		if got, is := ownerUID(text); got != ownerA || is != orphan {
			t.Errorf("%s: got the uid %q, orphan %t", text, got, is)
		}
	}
}

func TestOwnersWakeIfTheirChildHasChanged(t *testing.T) {
	before := state{version: 5, owner: ownerA, data: "x", fields: "f:data"}
	for name, test := range map[string]struct {
		after         state
		authoritative bool
		want          []string // the owners that wake
	}{
		"content":                         {after: state{version: 6, owner: ownerA, data: "y", fields: "f:data"}, want: []string{ownerA}},
		"fields of the operator":          {after: state{version: 6, owner: ownerA, data: "x", fields: "f:other"}, want: []string{ownerA}},
		"no fields of the operator":       {after: state{version: 6, owner: ownerA, data: "x"}, want: []string{ownerA}},
		"fields of another manager":       {after: state{version: 6, owner: ownerA, data: "x", fields: "f:data", other: "f:x"}},
		"only the version":                {after: state{version: 6, owner: ownerA, data: "x", fields: "f:data"}},
		"another owner":                   {after: state{version: 6, owner: ownerB, data: "x", fields: "f:data"}, want: []string{ownerA, ownerB}},
		"a stale event":                   {after: state{version: 4, owner: ownerA, data: "y", fields: "f:data"}},
		"the same event again":            {after: before},
		"a lower version after a restore": {after: state{version: 4, owner: ownerA, data: "y", fields: "f:data"}, authoritative: true, want: []string{ownerA}},
		"another object of the name":      {after: state{uid: "u2", version: 6, owner: ownerA, data: "x", fields: "f:data"}, want: []string{ownerA}},
	} {
		s := store()
		if got := s.update(before.child(t, s), false); !slices.Equal(got, []string{ownerA}) {
			t.Fatalf("%s: the new child wakes %q, want its owner", name, got)
		}
		if got := s.update(test.after.child(t, s), test.authoritative); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// Clients can create any number of objects that look like children of one owner. Each change of one
// is a turn of the owner, with the lock of the children of all owners.
func TestForgedChildrenCostTheirOwnerNothing(t *testing.T) {
	s := store()
	for i := range 1000 {
		forged := state{version: 5, owner: ownerA}.child(t, s)
		forged.Name, forged.UID, forged.Applied = fmt.Sprint("forged-", i), fmt.Sprint("u-", i), false
		packed, err := object.ParseWhole(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"ns","uid":%q,"resourceVersion":"5"}}`, forged.Name, forged.UID))
		if err != nil {
			t.Fatal(err)
		}
		forged.packed = s.packer(configs).Pack(packed)
		s.update(forged, false)
	}
	if n := len(s.Of(ownerA)); n != 1000 {
		t.Fatalf("%d children are known", n)
	}
	own := state{version: 6, owner: ownerA}.child(t, s)
	own.Applied = true
	s.update(own, false)
	if got := s.Applied(ownerA, "ns", 10); len(got) != 1 || got[0].UID != own.UID {
		t.Errorf("got %v, want the applied one", got)
	}
	if got := s.Applied(ownerA, "ns", 0); len(got) != 0 {
		t.Errorf("got %v, want none", got)
	}
	if n := testing.AllocsPerRun(10, func() { s.Applied(ownerA, "ns", 10) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
}

func TestForgedChildrenElsewhereHideNone(t *testing.T) {
	s := store()
	own := state{version: 6, owner: ownerA}.child(t, s)
	own.Applied = true
	s.update(own, false)
	for i, deletion := range []string{"", `"deletionTimestamp":"2026-01-01T00:00:00Z",`, "", ""} {
		forged := state{version: 7, owner: ownerA}.child(t, s)
		forged.Name, forged.UID, forged.Applied = fmt.Sprint("forged-", i), fmt.Sprint("u-", i), true
		packed, err := object.ParseWhole(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{%s"name":%q,"namespace":"elsewhere","uid":%q,"resourceVersion":"7"}}`, deletion, forged.Name, forged.UID))
		if err != nil {
			t.Fatal(err)
		}
		forged.packed = s.packer(configs).Pack(packed)
		s.update(forged, false)
	}
	var names []string
	for _, c := range s.Applied(ownerA, "ns", 2) {
		names = append(names, c.Name)
	}
	if slices.Sort(names); !slices.Equal(names, slices.Sorted(slices.Values([]string{"forged-2", "forged-3", own.Name}))) {
		t.Errorf("got %q", names)
	}
}

func TestStoreFindsChildrenByNameAndOwner(t *testing.T) {
	s := store()
	first := state{version: 5, owner: ownerA}.child(t, s)
	s.update(first, false)
	moved := state{version: 6, owner: ownerB}.child(t, s)
	s.update(moved, false)
	if !reflect.DeepEqual(s.Find(first.Key), moved) || len(s.Of(ownerA)) != 0 || !reflect.DeepEqual(s.Of(ownerB), []*Child{moved}) {
		t.Error("the child did not move to its new owner")
	}
	again := state{uid: "u2", version: 7, owner: ownerB}.child(t, s)
	s.update(again, false)
	if got := s.gone(configs, object.Identity{Namespace: "ns", Name: "a", UID: "u1", ResourceVersion: "8"}, 0); got != ownerB {
		t.Errorf("the deletion of the former object wakes %q, want its owner", got)
	}
	if !reflect.DeepEqual(s.Find(again.Key), again) || !reflect.DeepEqual(s.Of(ownerB), []*Child{again}) {
		t.Error("the deletion of the former object removed the new one")
	}
	for namespace, want := range map[string]int{"": 1, "ns": 1, "other": 0} {
		if got := len(slices.Collect(s.identities(configs, namespace))); got != want {
			t.Errorf("namespace %q has %d children, want %d", namespace, got, want)
		}
	}
	if got := len(slices.Collect(s.identities(kind.Info{Version: "v1", Kind: "Secret"}, ""))); got != 0 {
		t.Errorf("%d config maps are listed as secrets", got)
	}
}

func TestDeletionsCountUnlessAWriteIsNewer(t *testing.T) {
	for name, test := range map[string]struct {
		uid, version string
		mark         uint64 // the child is from the mark 10
		want         string
	}{
		"deletion event":                {"u1", "6", 0, ownerA},
		"event of an older version":     {"u1", "4", 99, ""},
		"unknown child":                 {"u9", "6", 99, ""},
		"missing in a later list":       {"u1", "", 11, ownerA},
		"missing in an earlier list":    {"u1", "", 9, ""},
		"missing in a list of its mark": {"u1", "", 10, ownerA},
	} {
		s := store()
		c := state{version: 5, owner: ownerA}.child(t, s)
		c.mark = 10
		s.update(c, false)
		if got := s.gone(configs, object.Identity{Namespace: "ns", Name: "a", UID: test.uid, ResourceVersion: test.version}, test.mark); got != test.want {
			t.Errorf("%s: wakes %q, want %q", name, got, test.want)
		}
		if known := s.Find(c.Key) != nil; known == (test.want != "") {
			t.Errorf("%s: the child is known: %t", name, known)
		}
	}
}

func TestWritesHoldBackTheirOwnEvents(t *testing.T) {
	sent := state{version: 6, owner: ownerA, data: "sent", fields: "f:data"}
	for name, test := range map[string]struct {
		event    *state // arrives during the write; nil means a deletion
		failed   bool
		changed  bool
		newest   int // the version in the store; 0 means that there is none
		noEvents bool
		another  bool // the write created another object of this name
	}{
		"no event":               {noEvents: true, newest: 6},
		"its own event":          {event: &sent, newest: 6},
		"an older event":         {event: &state{version: 5, owner: ownerA, data: "old"}, newest: 6},
		"a newer event":          {event: &state{version: 7, owner: ownerA, data: "new"}, changed: true, newest: 7},
		"failed, no event":       {noEvents: true, failed: true, newest: 3},
		"failed, an event":       {event: &state{version: 7, owner: ownerA, data: "new"}, failed: true, changed: true, newest: 7},
		"failed, a deletion":     {failed: true, changed: true},
		"deletion of the former": {another: true, newest: 6},
		"a deletion":             {changed: true}, // it overtook the response
	} {
		s := store()
		before := state{version: 3, owner: ownerA, data: "before", fields: "f:data"}.child(t, s)
		s.update(before, false)
		s.Sending(before.Key)
		switch {
		case test.noEvents:
		case test.event != nil:
			if got := s.update(test.event.child(t, s), false); got != nil {
				t.Errorf("%s: the event wakes %q during the write", name, got)
			}
		default:
			if got := s.gone(configs, object.Identity{Namespace: "ns", Name: "a", UID: "u1", ResourceVersion: "4"}, 0); got != "" {
				t.Errorf("%s: the deletion wakes %q during the write", name, got)
			}
		}
		var response *Child
		if !test.failed {
			written := sent
			if test.another {
				written.uid = "u2"
			}
			response = written.child(t, s)
		}
		if got := s.Sent(before.Key, response); got != test.changed {
			t.Errorf("%s: changed by another client: %t, want %t", name, got, test.changed)
		}
		newest := 0
		if c := s.Find(before.Key); c != nil {
			_, _ = fmt.Sscan(c.Body().ResourceVersion, &newest) // a failure leaves 0
		}
		if newest != test.newest {
			t.Errorf("%s: the store has version %d, want %d", name, newest, test.newest)
		}
	}
}

func TestDeletedChildrenStayWhileTheirDeletionTakesTime(t *testing.T) {
	for name, test := range map[string]struct {
		child Child
		slow  bool
	}{
		"plain":      {Child{Key: children.Key{Kind: "ConfigMap"}}, false},
		"finalizers": {Child{Key: children.Key{Kind: "ConfigMap"}, Finalized: true}, true},
		"pod":        {Child{Key: children.Key{Kind: "Pod"}}, true},
	} {
		s := store()
		c := test.child
		c.UID, c.Owner = "u1", ownerA
		c.packed = new(object.Packer).Pack(&object.Body{Identity: object.Identity{Kind: c.Kind, UID: "u1"}})
		s.put(&c)
		s.Sending(c.Key)
		s.Dropped(&c)
		if c.Slow() != test.slow || (s.Find(c.Key) != nil) != test.slow || (s.former(&c) != nil) != test.slow {
			t.Errorf("%s: it stays: %t, want %t", name, s.Find(c.Key) != nil, test.slow)
		}
		if len(s.sending) > 0 {
			t.Errorf("%s: its events are still held back", name)
		}
	}
}

// Other clients may write children that take long to decode. Turns of all objects look for
// their children meanwhile.
func TestObjectsAreComparedWithoutTheLock(t *testing.T) {
	s, compared := store(), 0
	s.equal = func(a, b *Child) bool {
		compared++
		s.Find(b.Key) // would block for ever
		return equal(a, b)
	}
	s.update(state{version: 1, owner: ownerA, data: "x"}.child(t, s), false)
	if owners := s.update(state{version: 2, owner: ownerA, data: "x"}.child(t, s), false); len(owners) > 0 {
		t.Errorf("a new version wakes %v", owners)
	}
	s.equal = func(a, b *Child) bool { // a response arrives meanwhile
		compared++
		s.Sent(b.Key, state{version: 4, owner: ownerA, data: "y"}.child(t, s))
		return equal(a, b)
	}
	if owners := s.update(state{version: 3, owner: ownerA, data: "x"}.child(t, s), false); len(owners) > 0 {
		t.Errorf("an outdated version wakes %v", owners)
	}
	if found := s.Find(children.Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"}); found.Body().ResourceVersion != "4" {
		t.Errorf("version %s replaced the response", found.Body().ResourceVersion)
	}
	r := NewReferences(func(string, string) {}, math.MaxInt64)
	r.hash = func(b *object.Body) uint64 {
		compared++
		_ = r.Set("y", "a", "one", nil) // would block for ever
		r.Drop("y")
		return b.ContentHash()
	}
	_ = r.Set("x", "a", "one", []Reference{{Of: &kind.Selector{}, Namespace: "a", Name: "shared"}})
	r.deliver(secrets, referenced(t, kube.Added, "shared", "1", "v"))
	if compared != 3 {
		t.Errorf("%d comparisons", compared)
	}
}
