package progress

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"slices"
	"testing"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/storage"
)

// sightings returns the ids of the handlers with a sighting.
func (n *Note) sightings() (ids []string) {
	for id := range n.saw {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func TestANoteIsVerifiedByTheBaseAndTheRecords(t *testing.T) {
	note := func() *Note {
		n := &Note{Reason: cause.Update, Base: "b1"}
		n.Saw("before", state("a"), time.Time{})
		n.Saw("now", state("b"), second(1))
		return n
	}
	done := finished(1)
	done.Purpose = string(cause.Update)
	with := func(change func(*storage.Record)) map[string]storage.Record {
		r := done
		change(&r)
		return map[string]storage.Record{"now": r}
	}
	cases := map[string]struct {
		base    string
		records map[string]storage.Record
		want    []string
	}{
		"nothing has changed":        {"b1", with(func(*storage.Record) {}), []string{"before", "now"}},
		"another base":               {"b2", with(func(*storage.Record) {}), []string{"now"}},
		"no record":                  {"b1", nil, []string{"before"}},
		"a record with another time": {"b1", with(func(r *storage.Record) { r.Stopped = second(2) }), []string{"before"}},
		"the same microsecond":       {"b1", with(func(r *storage.Record) { r.Stopped = second(1).Add(999) }), []string{"before", "now"}},
		"another purpose":            {"b1", with(func(r *storage.Record) { r.Purpose = "create" }), []string{"before"}},
		"an unfinished record":       {"b1", with(func(r *storage.Record) { *r = storage.Record{Purpose: "update", Stopped: second(1)} }), []string{"before"}},
	}
	for name, c := range cases {
		n := note()
		n.Verify(c.base, c.records)
		if got := n.sightings(); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	n := note()
	n.Base = ""
	if n.Verify("", nil); len(n.sightings()) != 0 {
		t.Errorf("without a base: got %q", n.sightings())
	}
}

func TestANoteOfAnotherReasonKeepsThePreviousHandling(t *testing.T) {
	note := func() *Note {
		n := &Note{Key: "k", Reason: cause.Create, Started: second(1), Base: "b"}
		n.Saw("before", state("a"), time.Time{})
		n.Saw("now", state("b"), second(1))
		return n
	}
	same := note()
	same.Continue(cause.Create)
	if !same.Equal(note()) {
		t.Errorf("a note of the same reason is changed: %+v", same)
	}
	other := note()
	other.Continue(cause.Update)
	if other.Key != "" || other.Reason != cause.Update || !other.Started.IsZero() || other.Base != "b" || !slices.Equal(other.sightings(), []string{"before"}) {
		t.Errorf("got %+v", other)
	}
	if !other.Followed() || other.Earlier("before") == nil || note().Earlier("now") != nil || note().Earlier("nobody") != nil {
		t.Errorf("the sighting of the previous handling is lost: %+v", other)
	}
	now := &Note{}
	if now.Saw("now", state("b"), second(1)); now.Followed() {
		t.Error("a note of this handling counts as one of the previous")
	}
}

func TestEqualComparesTheContentsOfNotes(t *testing.T) {
	note := func(changes ...func(*Note)) *Note {
		n := &Note{Key: "k", Reason: cause.Update, Started: second(1), Base: "b", Todo: []Todo{{"h", map[string]any{"a": "1"}}}}
		n.Saw("x", state("a"), second(1))
		for _, change := range changes {
			change(n)
		}
		return n
	}
	if !note().Equal(note()) || !note().Equal(note().Clone()) {
		t.Error("equal notes differ")
	}
	for name, change := range map[string]func(*Note){
		"key":                 func(n *Note) { n.Key = "" },
		"reason":              func(n *Note) { n.Reason = cause.Create },
		"base":                func(n *Note) { n.Base = "" },
		"start":               func(n *Note) { n.Started = second(2) },
		"a handler":           func(n *Note) { n.Saw("y", state("a"), second(1)) },
		"other handlers":      func(n *Note) { n.Rename("x", "y") },
		"a time":              func(n *Note) { n.Saw("x", state("a"), second(2)) },
		"an essence":          func(n *Note) { n.Saw("x", state("b"), second(1)) },
		"no unsent change":    func(n *Note) { n.Todo = nil },
		"handler of a change": func(n *Note) { n.Todo[0].Handler = "i" },
		"patch of a change":   func(n *Note) { n.Todo[0].Patch = map[string]any{"a": "2"} },
	} {
		if note().Equal(note(change)) || note(change).Equal(note()) {
			t.Errorf("%s: different notes are equal", name)
		}
		clone := note()
		copied := clone.Clone()
		if change(copied); !clone.Equal(note()) {
			t.Errorf("%s: modifying the copy modified the note", name)
		}
	}
}

func TestANoteIsEmptyWithoutHandlersAndChanges(t *testing.T) {
	if !(&Note{Key: "k"}).Empty() || (&Note{Todo: []Todo{{}}}).Empty() {
		t.Error("Empty ignores unsent changes, or reports an empty note as not empty")
	}
	n := &Note{}
	if n.Saw("x", state("a"), second(1)); n.Empty() {
		t.Error("a note with a handler is empty")
	}
}

func TestANoteFollowsRenamedHandlers(t *testing.T) {
	n := &Note{}
	n.Saw("old", state("a"), time.Time{})
	n.Saw("own", state("b"), time.Time{})
	n.Rename("old", "new")
	n.Rename("new", "own")
	n.Rename("nothing", "other")
	if got := n.sightings(); !slices.Equal(got, []string{"own"}) || n.Earlier("own")["spec"] == nil {
		t.Errorf("got %q", got)
	}
}

func TestAbsorbUpdatesDigestsOfTheSameEssence(t *testing.T) {
	digestOf := func(fields map[string]any) map[string]any {
		d, err := essence.Digest(fields)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	n := &Note{}
	n.Saw("same", digestOf(state("a")), time.Time{})
	n.Saw("other", digestOf(state("x")), time.Time{})
	n.Absorb(state("a"), state("b"))
	if got := n.Earlier("same"); !diff.Equal(got, digestOf(state("b"))) {
		t.Errorf("got %v", got)
	}
	if got := n.Earlier("other"); !diff.Equal(got, digestOf(state("x"))) {
		t.Errorf("another essence: got %v", got)
	}
}

func TestUnpackLimitsTheSize(t *testing.T) {
	for size, fits := range map[int]bool{2 << 20: true, 2<<20 + 1: false} {
		var packed bytes.Buffer
		encoder := base64.NewEncoder(base64.StdEncoding, &packed)
		z := gzip.NewWriter(encoder)
		if _, err := z.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(z.Close(), encoder.Close()); err != nil {
			t.Fatal(err)
		}
		if raw, err := unpack(compressed + packed.String()); (err == nil) != fits || fits && len(raw) != size {
			t.Errorf("%d bytes become %d: %v", size, len(raw), err)
		}
	}
}

func TestEarlierStatesHasEachEssenceOfThePreviousHandlingOnce(t *testing.T) {
	n := &Note{}
	n.Saw("a", state("1"), time.Time{})
	n.Saw("b", state("2"), time.Time{})
	n.Saw("c", state("1"), time.Time{})
	n.Saw("now", state("3"), second(1))
	for name, c := range map[string]struct {
		ids  []string
		want []string
	}{
		"in the order of the ids":  {[]string{"b", "a"}, []string{"2", "1"}},
		"the same essence":         {[]string{"a", "c", "b", "a"}, []string{"1", "2"}},
		"of this handling":         {[]string{"now"}, nil},
		"of unknown handlers":      {[]string{"nobody"}, nil},
		"of this and the previous": {[]string{"now", "c"}, []string{"1"}},
	} {
		var got []string
		for _, e := range n.EarlierStates(c.ids) {
			got = append(got, e["spec"].(map[string]any)["field"].(string))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestEarlierWithinHasOnlySubHandlersOfThePreviousHandling(t *testing.T) {
	n := &Note{}
	for _, id := range []string{"p", "p/b", "p/a/x", "px/a", "q/p/a"} {
		n.Saw(id, state("1"), time.Time{})
	}
	n.Saw("p/now", state("1"), second(1))
	if got, want := n.EarlierWithin("p"), []string{"p/a/x", "p/b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRenewReplacesEssencesButNotDigests(t *testing.T) {
	digest, err := essence.Digest(state("1"))
	if err != nil {
		t.Fatal(err)
	}
	n := &Note{}
	n.Saw("a", state("1"), time.Time{})
	n.Saw("b", digest, time.Time{})
	n.Renew(func(map[string]any) map[string]any { return state("renewed") })
	if !diff.Equal(n.Earlier("a"), state("renewed")) || !diff.Equal(n.Earlier("b"), digest) {
		t.Errorf("got %v and %v", n.Earlier("a"), n.Earlier("b"))
	}
}

func TestUnpackReportsDamagedTexts(t *testing.T) {
	const whole = "H4sIAAAAAAAC/6quBQQAAP//Q7+mowIAAAA=" // {}
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"whole":     {whole, true},
		"cut":       {whole[:24], false},
		"no base64": {"not base64", false},
		"no gzip":   {base64.StdEncoding.EncodeToString([]byte("{}")), false},
		"empty":     {"", false},
	} {
		if raw, err := unpack(compressed + c.text); (err == nil) != c.ok || c.ok && string(raw) != "{}" {
			t.Errorf("%s: got %q, error %v", name, raw, err)
		}
	}
}
