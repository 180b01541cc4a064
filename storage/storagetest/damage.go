package storagetest

import (
	"errors"
	"slices"
	"testing"

	"gopf.dev/gopf/storage"
)

// damagedRecords tests that one unreadable record does not affect the others.
func damagedRecords(t *testing.T, s storage.Progress, damage func(storage.Object, string)) {
	o := newProgress(t, s)
	all := map[string]storage.Record{"a": samples()["done"], "b": samples()["full"], "c": samples()["fresh"]}
	o.save(all)
	broken := []string{"a", "c"}
	for _, id := range broken {
		if damage != nil {
			damage(o.body, id)
			continue
		}
		patch := Patch{}
		o.saveInto(patch, map[string]storage.Record{id: samples()["delayed"]})
		if len(patch) == 0 {
			t.Log("Skipped, because the records are not on the object. Pass the option Damage to test this.")
			return
		}
		o.body = o.body.Apply(spoilt(map[string]any(patch)).(map[string]any))
	}
	records, err := s.Load(t.Context(), o.body, []string{"a", "b", "c", "unknown"})
	var malformed *storage.MalformedError
	switch {
	case !errors.As(err, &malformed):
		t.Errorf("Load: error %v, want a *storage.MalformedError", err)
	case !slices.Equal(malformed.IDs, broken):
		t.Errorf("Load: ids %q are damaged, want %q", malformed.IDs, broken)
	}
	sameRecords(t, map[string]storage.Record{"b": all["b"]}, records)
	sameRecords(t, map[string]storage.Record{"b": all["b"]}, o.load("b", "unknown"))

	// Damaged records can be replaced and purged.
	o.save(map[string]storage.Record{"a": samples()["fresh"]}, "c")
	sameRecords(t, map[string]storage.Record{"a": samples()["fresh"], "b": all["b"]}, o.load("a", "b", "c"))
}

// spoilt returns a patch that writes unreadable values in place of records.
func spoilt(v any) any {
	switch v := v.(type) {
	case string:
		return "{not a record"
	case map[string]any:
		if _, isRecord := v["retries"]; isRecord {
			return "not a record"
		}
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = spoilt(value)
		}
		return out
	}
	return v
}
