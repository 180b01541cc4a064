package vectors_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

type progressCase struct {
	Storage     map[string]any
	Op          string
	Body        storagetest.Body
	PatchBefore storagetest.Patch `json:"patch_before"`
	PatchAfter  map[string]any    `json:"patch_after"`
	Args        struct {
		Key    string
		Record map[string]any
		Value  any
	}
	Result map[string]any
	Error  string
}

func progressStorage(t *testing.T, v vector) {
	c := decode[progressCase](t, v.JSON)
	s := progressOf(t, c.Storage)
	switch c.Op {
	case "fetch":
		c.fetch(t, s)
	case "store":
		c.store(t, s)
	case "purge":
		if err := s.Save(t.Context(), c.Body, c.PatchBefore, nil, []string{c.Args.Key}); err != nil {
			t.Fatal(err)
		}
		samePatch(t, c.PatchAfter, c.PatchBefore)
	case "touch":
		c.touch(t, s.(storage.Untoucher))
	case "clear":
		if c.Error != "" {
			// Kopf breaks on a path that is blocked by something other than an object.
			// To us there is nothing to clean off then.
			c.Result = maps.Clone(c.Body)
		}
		s.Clean(c.Body)
		samePatch(t, c.Result, c.Body)
	default:
		t.Fatalf("unknown operation %q", c.Op)
	}
}

func (c progressCase) fetch(t *testing.T, s storage.Progress) {
	records, err := s.Load(t.Context(), c.Body, []string{c.Args.Key})
	if (err != nil) != (c.Error != "") {
		t.Fatalf("error: got %v, want %q", err, c.Error)
	}
	record, found := records[c.Args.Key]
	if err != nil || found != (c.Result != nil) {
		if err == nil {
			t.Errorf("found: got %v, want %v", found, c.Result != nil)
		}
		return
	}
	if c.Result != nil {
		samePatch(t, withCounters(full(c.Result)), record.Fields())
	}
}

func (c progressCase) store(t *testing.T, s storage.Progress) {
	text, err := json.Marshal(c.Args.Record)
	if err != nil {
		t.Fatal(err)
	}
	var record storage.Record
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	err = s.Save(t.Context(), c.Body, c.PatchBefore, map[string]storage.Record{c.Args.Key: record}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Args.Record["retries"] != nil {
		if !diff.Equal(c.PatchAfter, map[string]any(c.PatchBefore)) {
			t.Errorf("got  %v\nwant %v", c.PatchBefore, c.PatchAfter)
		}
		return
	}
	// Records without the number of attempts exist only in the vectors: it is
	// always written (§1.5), as a zero by us.
	samePatch(t, eachRecord(c.PatchAfter, withCounters), eachRecord(c.PatchBefore, withCounters))
}

// touch differs on purpose: our delays are alarms in memory, and objects are not
// touched at all. What Kopf has left by touching must be removed by us.
func (c progressCase) touch(t *testing.T, s storage.Untoucher) {
	if c.Args.Value == nil {
		s.Untouch(c.Body, c.PatchBefore)
		samePatch(t, c.PatchAfter, c.PatchBefore)
		return
	}
	patch := storagetest.Patch{}
	s.Untouch(c.Body.Apply(c.PatchAfter), patch)
	if len(c.PatchAfter) > 0 {
		samePatch(t, untouching(c.PatchAfter, c.Args.Value), patch)
	} else if len(patch) == 0 {
		t.Error("what Kopf has left is not removed")
	}
}

// untouching is the patch that takes back a patch that touches; the marker of
// a prefix stays.
func untouching(touching map[string]any, value any) map[string]any {
	back := make(map[string]any, len(touching))
	for key, was := range touching {
		if object, ok := was.(map[string]any); ok {
			back[key] = untouching(object, value)
		} else if diff.Equal(was, value) {
			back[key] = nil
		} else if !strings.HasSuffix(key, "/kopf-managed") {
			back[key] = was
		}
	}
	return back
}

func baseStorage(t *testing.T, v vector) {
	c := decode[struct {
		Storage                map[string]any
		Op, Error              string
		Body                   storagetest.Body
		Essence, Patch, Result map[string]any
	}](t, v.JSON)
	s := baseOf(t, c.Storage)
	switch c.Op {
	case "store":
		patch := storagetest.Patch{}
		if err := s.Save(t.Context(), c.Body, patch, c.Essence); err != nil {
			t.Fatal(err)
		}
		samePatch(t, c.Patch, patch)
	case "fetch":
		essence, found, err := s.Load(t.Context(), c.Body)
		if (err != nil) != (c.Error != "") {
			t.Fatalf("error: got %v, want %q", err, c.Error)
		}
		if found != (c.Result != nil) {
			t.Errorf("found: got %v, want %v", found, c.Result != nil)
		}
		samePatch(t, c.Result, essence)
	default:
		t.Fatalf("unknown operation %q", c.Op)
	}
}

// samePatch compares objects. In their texts the order of JSON keys may differ.
func samePatch(t *testing.T, want, got map[string]any) {
	t.Helper()
	for _, item := range diff.Of(want, got) {
		old, wasText := item.Old.(string)
		new, isText := item.New.(string)
		if !wasText || !isText || !sameText(old, new) {
			t.Errorf("want -> got: %s", item)
		}
	}
	if len(diff.Of(want, got)) == 0 && !diff.Equal(want, got) && len(want)+len(got) > 0 {
		t.Errorf("nulls differ:\ngot  %v\nwant %v", got, want)
	}
}

// full adds the nulls for the fields that a record does not have.
func full(record map[string]any) map[string]any {
	all := storage.Record{}.Fields()
	for key := range all {
		all[key] = record[key]
	}
	return all
}

// withCounters replaces nulls where a record always has a value.
func withCounters(record map[string]any) map[string]any {
	for key, value := range map[string]any{"retries": 0, "success": false, "failure": false} {
		if record[key] == nil {
			record[key] = value
		}
	}
	return record
}

// eachRecord applies the function to the records in a patch, be they texts or
// objects.
func eachRecord(patch map[string]any, apply func(map[string]any) map[string]any) map[string]any {
	changed := make(map[string]any, len(patch))
	for key, value := range patch {
		switch value := value.(type) {
		case string:
			changed[key] = value
			if record, found, err := storage.DecodeEssence(value); err == nil && found {
				changed[key] = apply(record)
			}
		case map[string]any:
			if _, ok := value["retries"]; ok {
				changed[key] = apply(value)
			} else {
				changed[key] = eachRecord(value, apply)
			}
		default:
			changed[key] = value
		}
	}
	return changed
}
