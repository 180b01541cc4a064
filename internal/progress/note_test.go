package progress

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/storage"
)

// decode decodes a note and ignores errors.
func decode(r storage.Record, records map[string]storage.Record) *Note {
	n, _ := DecodeNote(r, records)
	return n
}

func state(field string) map[string]any {
	return map[string]any{"spec": map[string]any{"field": field}}
}

func second(n int) time.Time { return time.Date(2030, 1, 1, 0, 0, n, 0, time.UTC) }

func finished(n int, subs ...string) storage.Record {
	return storage.Record{Started: second(0), Stopped: second(n), Purpose: "create", Success: true, Subrefs: subs}
}

func TestTheBaseIsTheEssenceOfTheEarliestLateHandler(t *testing.T) {
	type saw map[string]string // field by handler, in the order of finishing: a, b, c …
	for name, c := range map[string]struct {
		saw     saw
		final   string
		base    string
		earlier saw // the sightings in the note for the update that follows
	}{
		"all saw the final state":           {saw{"a": "1", "b": "1"}, "1", "1", nil},
		"nothing is known of any handler":   {saw{}, "1", "1", nil},
		"one is late":                       {saw{"a": "1", "b": "2"}, "2", "1", saw{"b": "2"}},
		"there and back":                    {saw{"a": "1", "b": "2"}, "1", "2", saw{"a": "1"}},
		"all are late, with the same state": {saw{"a": "1", "b": "1"}, "2", "1", nil},
		"all are late":                      {saw{"a": "1", "b": "2"}, "3", "1", saw{"b": "2"}},
		"the earliest saw the final state":  {saw{"a": "3", "b": "1", "c": "2"}, "3", "1", saw{"a": "3", "c": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			n, records := &Note{Reason: cause.Create}, map[string]storage.Record{}
			for i, id := range slices.Sorted(maps.Keys(c.saw)) {
				n.Saw(id, state(c.saw[id]), second(i+1))
				records[id] = finished(i + 1)
			}
			end := n.End(state(c.final), nil, records, nil)
			if !diff.Equal(end.Base, state(c.base)) {
				t.Errorf("the base is %v, want %s", end.Base, c.base)
			}
			got := saw{}
			for id := range c.saw {
				if end.Note == nil {
					break
				}
				if seen := end.Note.Earlier(id); seen != nil {
					got[id] = seen["spec"].(map[string]any)["field"].(string)
				}
			}
			if !maps.Equal(got, c.earlier) {
				t.Errorf("the note has %v, want %v", got, c.earlier)
			}
		})
	}
}

// The parent saw the final state, but one of its sub-handlers did not: the parent must
// be called for it, so the note must name the sub-handler although it saw the base.
func TestOfTwoHandlersThatFinishedTogetherTheFirstEssenceBecomesTheBase(t *testing.T) {
	n := &Note{Reason: cause.Create}
	n.Saw("early", state("0"), second(1))
	n.Saw("first", state("1"), second(2))
	n.Saw("second", state("2"), second(2))
	for range 20 { // maps have no order
		if end := n.End(state("0"), nil, map[string]storage.Record{"early": finished(1), "first": finished(2), "second": finished(2)}, nil); !diff.Equal(end.Base, state("1")) {
			t.Fatalf("the base is %v", end.Base)
		}
		if end := n.End(state("3"), nil, map[string]storage.Record{"early": finished(1), "first": finished(2), "second": finished(2)}, nil); !diff.Equal(end.Base, state("0")) {
			t.Fatalf("the base is %v, want that of the earliest", end.Base)
		}
	}
}

// There are more states than a note keeps, and the object ends in one of those that it
// keeps. The handlers of the others must not be taken for up to date.
func TestHandlersOfTooManyStatesStayLate(t *testing.T) {
	n := &Note{Reason: cause.Create}
	records := map[string]storage.Record{}
	name := func(i int) string { return "h" + strconv.Itoa(i) }
	for i := range maxEssences + 10 {
		n.Saw(name(i), state(strconv.Itoa(i)), second(i))
		records[name(i)] = finished(i)
	}
	for _, final := range []int{maxEssences - 2, maxEssences - 1, maxEssences, maxEssences + 9} {
		end := n.End(state(strconv.Itoa(final)), nil, records, nil)
		for _, i := range []int{maxEssences - 1, maxEssences, maxEssences + 9} {
			if seen := end.Note.Earlier(name(i)); seen == nil || diff.Equal(seen, state(strconv.Itoa(final))) {
				t.Errorf("the object ends in state %d: handler %d saw %v", final, i, seen)
			}
		}
		record, err := end.Note.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeNote(record, nil); err != nil {
			t.Errorf("the note cannot be read: %v", err)
		}
	}
}

func TestALateSubHandlerIsNamedIfItsParentIsNotLate(t *testing.T) {
	n := &Note{Reason: cause.Create}
	n.Saw("parent/quick", state("1"), second(1))
	n.Saw("parent/slow", state("2"), second(2))
	n.Saw("parent", state("2"), second(3))
	n.Saw("other/quick", state("1"), second(1))
	n.Saw("other", state("1"), second(1))
	end := n.End(state("2"), nil, map[string]storage.Record{
		"parent": finished(3, "parent/quick", "parent/slow"), "parent/quick": finished(1), "parent/slow": finished(2),
		"other": finished(1, "other/quick"), "other/quick": finished(1),
	}, nil)
	if !diff.Equal(end.Base, state("1")) {
		t.Errorf("the base is %v", end.Base)
	}
	for id, want := range map[string]map[string]any{
		"parent": state("2"), "parent/quick": state("1"), "parent/slow": state("2"), "other": nil, "other/quick": nil,
	} {
		if got := end.Note.Earlier(id); (got == nil) != (want == nil) || !diff.Equal(got, want) {
			t.Errorf("%s saw %v, want %v", id, got, want)
		}
	}
	if got := end.Note.EarlierWithin("parent"); !slices.Equal(got, []string{"parent/quick", "parent/slow"}) {
		t.Errorf("within the parent: %q", got)
	}
}

func TestAnUnfinishedParentKeepsTheOldBase(t *testing.T) {
	n := &Note{Reason: cause.Update}
	n.Saw("parent/sub/sub", state("2"), second(1))
	waiting := func(subs ...string) storage.Record {
		return storage.Record{Started: second(0), Purpose: "update", Subrefs: subs}
	}
	end := n.End(state("1"), state("1"), map[string]storage.Record{
		"parent": waiting("parent/other", "parent/sub", "parent/sub/sub"), "parent/sub": waiting("parent/sub/sub"), "parent/sub/sub": finished(1), "parent/other": waiting(),
	}, nil)
	if !diff.Equal(end.Base, state("2")) {
		t.Errorf("the base is %v", end.Base)
	}
	for id, want := range map[string]string{"parent": "1", "parent/other": "1", "parent/sub": "1", "parent/sub/sub": "2"} {
		if got := end.Note.Earlier(id); !diff.Equal(got, state(want)) {
			t.Errorf("%s saw %v, want %s", id, got, want)
		}
	}
}

func TestAnUnfinishedHandlerKeepsTheOldBase(t *testing.T) {
	n := &Note{Reason: cause.Update}
	n.Saw("done", state("2"), second(1))
	end := n.End(state("1"), state("1"), map[string]storage.Record{"done": finished(1), "waiting": {Started: second(0), Purpose: "update"}}, nil)
	if !diff.Equal(end.Base, state("2")) || !diff.Equal(end.Note.Earlier("waiting"), state("1")) {
		t.Errorf("base %v, waiting saw %v", end.Base, end.Note.Earlier("waiting"))
	}
}

func TestAHandlerWithoutARecordSawTheFinalState(t *testing.T) {
	n := &Note{Reason: cause.Create}
	n.Saw("done", state("1"), second(1))
	records := map[string]storage.Record{"done": finished(1), "waiting": {Started: second(0), Purpose: "create"}}
	end := n.End(state("2"), nil, records, []string{"done", "waiting", "unmatched"})
	for id, want := range map[string]map[string]any{"done": nil, "waiting": state("2"), "unmatched": state("2"), "for updates only": nil} {
		if got := end.Note.Earlier(id); !diff.Equal(got, want) {
			t.Errorf("%s saw %v, want %v; the base is %v", id, got, want, end.Base)
		}
	}
}

func TestAbsorbHidesOwnWritesFromFinishedHandlers(t *testing.T) {
	n := &Note{Reason: cause.Create}
	n.Saw("a", state("1"), second(1))
	n.Saw("b", state("2"), second(2))
	labelled := func(field string) map[string]any {
		s := state(field)
		s["metadata"] = map[string]any{"labels": map[string]any{"x": "y"}}
		return s
	}
	n.Absorb(state("2"), labelled("2"))
	if end := n.End(labelled("2"), nil, nil, nil); !diff.Equal(end.Base, labelled("1")) {
		t.Errorf("the base is %v", end.Base)
	}
	n.Absorb(labelled("2"), state("2")) // the reverse change leaves no empty maps
	if end := n.End(state("2"), nil, nil, nil); !diff.Equal(end.Base, state("1")) {
		t.Errorf("the base is %v", end.Base)
	}
}

func TestANoteSurvivesEncodingAndDecoding(t *testing.T) {
	big := map[string]any{"spec": map[string]any{"n": int64(1<<62 + 1), "text": strings.Repeat("x", 5000)}}
	n := &Note{Key: "K", Reason: cause.Update, Started: second(0), Base: "b", Todo: []Todo{{"a", map[string]any{"metadata": map[string]any{"labels": map[string]any{"x": nil}}}}}}
	n.Saw("a", big, second(1))
	n.Saw("b", state("2"), time.Time{})
	record, err := n.Encode()
	if err != nil {
		t.Fatal(err)
	}
	records := map[string]storage.Record{"a": {Started: second(0), Stopped: second(1), Purpose: "update", Success: true}}
	got := decode(record, records)
	got.Verify("b", records)
	if !got.Equal(n) {
		t.Errorf("got %+v, want %+v", got, n)
	}
	if again, _ := got.Encode(); !again.Equal(record) {
		t.Error("encoding the decoded note gives another result")
	}
	got.Verify("another base", map[string]storage.Record{"a": {Started: second(0), Stopped: second(5), Purpose: "update", Success: true}})
	if got.Followed() || len(got.saw) > 0 {
		t.Errorf("sightings of other handlings stay: %+v", got)
	}
}

func TestALargeNoteKeepsDigests(t *testing.T) {
	huge := map[string]any{}
	for i := range 5000 {
		huge[fmt.Sprint(i*i*7919)] = fmt.Sprint(i * i * 104729)
	}
	n := &Note{Reason: cause.Update, Started: second(0)}
	n.Saw("a", huge, second(1))
	n.Saw("b", state("2"), second(2))
	record, err := n.Encode()
	if err != nil || len(*record.Message) > largestNote {
		t.Fatalf("%v, %d bytes", err, len(*record.Message))
	}
	got := decode(record, nil)
	if late := got.End(huge, nil, nil, nil); diff.Equal(late.Base, huge) {
		t.Error("the note lost the sighting of the second handler")
	}
	got = decode(record, nil)
	delete(got.saw, "b")
	if end := got.End(huge, nil, nil, nil); end.Note != nil {
		t.Error("the digest of the final state is not recognized")
	}
	n.Todo = []Todo{{"a", huge}}
	if _, err = n.Encode(); err == nil {
		t.Error("changes that do not fit cause no error")
	}
}

func TestUnreadableAndUnknownNotesCountAsAbsent(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 64<<20))
	_ = z.Close()
	records := map[string]storage.Record{"a": {Started: second(0), Stopped: second(1), Purpose: "update", Success: true}}
	for name, message := range map[string]string{
		"a later version":    `{"v":3,"key":"K","essences":[{}],"saw":{"a":{"essence":0}}}`,
		"no JSON":            `{"v":2`,
		"not packed":         "gz:not base64",
		"a bomb":             compressed + base64.StdEncoding.EncodeToString(bomb.Bytes()),
		"a missing essence":  `{"v":2,"saw":{"a":{"essence":1}}}`,
		"an odd essence":     `{"v":2,"essences":[1],"saw":{"a":{"essence":0}}}`,
		"an odd moment":      `{"v":2,"essences":[{}],"saw":{"a":{"essence":0,"stopped":"now"}}}`,
		"an odd patch":       `{"v":2,"todo":[{"handler":"a","patch":1}]}`,
		"a negative essence": `{"v":2,"essences":[{}],"saw":{"a":{"essence":-1}}}`,
		"no contents":        `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			n := decode(storage.Record{Started: second(0), Purpose: "update", Message: &message}, records)
			if !n.Empty() || n.Key != "" {
				t.Errorf("got %+v", n)
			}
		})
	}
}

func TestANoteOfVersionOneHasOneEssenceForAllHandlers(t *testing.T) {
	message := `{"key":"K","seen":{"spec":{"field":"1"}}}`
	record := storage.Record{Started: second(0), Purpose: "create", Message: &message}
	n := decode(record, map[string]storage.Record{"a": finished(1), "b": finished(2), "c": {Started: second(0), Purpose: "create"}})
	if end := n.End(state("2"), nil, nil, nil); n.Key != "K" || len(n.saw) != 2 || !diff.Equal(end.Base, state("1")) {
		t.Errorf("got %+v", n)
	}
	other := storage.Record{Started: second(9), Stopped: second(10), Purpose: "create", Success: true}
	if n = decode(record, map[string]storage.Record{"a": other}); n.Key != "" || len(n.saw) != 0 {
		t.Errorf("the note is used for another handling: %+v", n)
	}
}
