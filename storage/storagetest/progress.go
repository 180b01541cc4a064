package storagetest

import (
	"fmt"
	"testing"
	"time"

	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/storage"
)

// Option configures a suite.
type Option func(*options)

type options struct {
	damage func(o storage.Object, id string)
}

// Damage sets a function that makes the stored record of an id unreadable. The suite then
// tests how Load reports this. Storages that store records on the object itself do not
// need it. Other storages are not tested for damage without it.
func Damage(fn func(o storage.Object, id string)) Option {
	return func(o *options) { o.damage = fn }
}

// Progress tests that the storage fulfills the contract of [storage.Progress]. The storage
// may contain other data: the tests use their own objects.
func Progress(t *testing.T, s storage.Progress, opts ...Option) {
	var with options
	for _, o := range opts {
		o(&with)
	}
	t.Run("OnlyDamagedRecordsAreMissing", func(t *testing.T) { damagedRecords(t, s, with.damage) })
	t.Run("NothingIsKnownAtFirst", func(t *testing.T) {
		o := newProgress(t, s)
		sameRecords(t, nil, o.load(ids...))
	})
	t.Run("EveryFieldIsKept", func(t *testing.T) {
		for name, record := range samples() {
			o := newProgress(t, s)
			want := map[string]storage.Record{name: record}
			o.save(want)
			sameRecords(t, want, o.load(name))
		}
	})
	t.Run("RemovedFieldsAreDeleted", func(t *testing.T) {
		o := newProgress(t, s)
		o.save(map[string]storage.Record{"id": samples()["full"]})
		want := map[string]storage.Record{"id": samples()["fresh"]}
		o.save(want)
		sameRecords(t, want, o.load("id"))
	})
	t.Run("RecordsOfAllIdsAreKeptApart", func(t *testing.T) {
		o := newProgress(t, s)
		want := make(map[string]storage.Record)
		for i, id := range ids {
			want[id] = storage.Record{Started: moment, Purpose: "create", Retries: i}
		}
		o.save(want)
		sameRecords(t, want, o.load(ids...))
		for _, id := range ids {
			sameRecords(t, map[string]storage.Record{id: want[id]}, o.load(id, "unknown"))
		}
	})
	t.Run("OnlyChangedRecordsAreReplaced", func(t *testing.T) {
		o := newProgress(t, s)
		o.save(map[string]storage.Record{"a": samples()["fresh"], "b": samples()["fresh"]})
		o.save(map[string]storage.Record{"b": samples()["done"]})
		sameRecords(t, map[string]storage.Record{"a": samples()["fresh"], "b": samples()["done"]}, o.load("a", "b"))
	})
	t.Run("PurgedRecordsAreGone", func(t *testing.T) {
		o := newProgress(t, s)
		records := make(map[string]storage.Record)
		for _, id := range ids {
			records[id] = samples()["full"]
		}
		records["kept"] = samples()["full"]
		o.save(records)
		o.save(nil, ids...)
		sameRecords(t, map[string]storage.Record{"kept": samples()["full"]}, o.load(append(ids, "kept")...))
	})
	t.Run("PurgingTakesPrecedenceOverChanging", func(t *testing.T) {
		o := newProgress(t, s)
		o.save(map[string]storage.Record{"new": samples()["full"]}, "new")
		sameRecords(t, nil, o.load("new"))

		o.save(map[string]storage.Record{"old": samples()["fresh"]})
		o.save(map[string]storage.Record{"old": samples()["full"]}, "old")
		sameRecords(t, nil, o.load("old"))
	})
	t.Run("RecordsCanBePurgedBeforeThePatchIsSent", func(t *testing.T) {
		o := newProgress(t, s)
		patch := Patch{}
		patch.Set("by a handler", "status", "phase")
		o.saveInto(patch, map[string]storage.Record{"a": samples()["full"], "b": samples()["full"]})
		o.saveInto(patch, nil, "a", "b")
		o.body = o.body.Apply(patch)
		sameRecords(t, nil, o.load("a", "b"))
		if value, _ := o.body.Lookup("status", "phase"); value != "by a handler" {
			t.Errorf("the handler's change in the patch is lost: %v", patch)
		}
	})
	t.Run("PurgingUnknownIDsChangesNothing", func(t *testing.T) {
		o := newProgress(t, s)
		patch := Patch{}
		o.saveInto(patch, nil, ids...)
		if len(patch) > 0 {
			t.Errorf("the patch is not empty: %v", patch)
		}
	})
	t.Run("ObjectsAreKeptApart", func(t *testing.T) {
		// The name is the same, as if the object were deleted and created again.
		one, two := newProgress(t, s), newProgress(t, s)
		one.save(map[string]storage.Record{"id": samples()["full"]})
		sameRecords(t, nil, two.load("id"))
		two.save(map[string]storage.Record{"id": samples()["fresh"]})
		one.save(nil, "id")
		sameRecords(t, map[string]storage.Record{"id": samples()["fresh"]}, two.load("id"))
	})
	t.Run("ConcurrentObjectsAreSupported", func(t *testing.T) {
		for i := range 8 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				o := newProgress(t, s)
				want := map[string]storage.Record{"id": {Started: moment, Retries: i}}
				o.save(want)
				sameRecords(t, want, o.load("id"))
			})
		}
	})
	t.Run("RecordsAreNotPartOfTheEssence", func(t *testing.T) {
		o := newProgress(t, s)
		clean := func() map[string]any {
			e := essence.Build(o.body, []jsonvalue.Path{{"metadata", "annotations"}, {"status"}})
			s.Clean(e)
			return e
		}
		before := clean()
		o.save(map[string]storage.Record{"a": samples()["full"], "b": samples()["fresh"]})
		sameEssence(t, before, clean())
		o.save(map[string]storage.Record{"a": samples()["done"]}, "b")
		sameEssence(t, before, clean())
		if _, ok := jsonvalue.Lookup(before, "metadata", "annotations", "example.com/note"); !ok {
			t.Errorf("Clean removed too much: %v", before)
		}
	})
}

var moment = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

// samples returns records of handlers in different states.
func samples() map[string]storage.Record {
	return map[string]storage.Record{
		"zero":  {},
		"fresh": {Started: moment, Purpose: "create"},
		"done":  {Started: moment, Stopped: moment.Add(time.Minute), Purpose: "update", Retries: 1, Success: true},
		"given up": {Started: moment, Stopped: moment.Add(time.Hour), Purpose: "delete", Retries: 3, Failure: true,
			Message: new("<no> & «нет» \"\\\n\t\u2028 😀")},
		"delayed":    {Started: moment, Delayed: moment.Add(time.Microsecond), Delay: 90*time.Second + time.Microsecond, Purpose: "resume", Retries: 1, Message: new("")},
		"other zone": {Started: moment.In(time.FixedZone("", 7200))},
		"full": {Started: moment, Stopped: moment, Delayed: moment, Purpose: "create", Retries: 12345,
			Success: true, Failure: true, Message: new("message"), Subrefs: []string{"a/b", "a/b/c", "a/«»"}},
	}
}

// progress is an object to which every patch is applied immediately.
type progress struct {
	t       *testing.T
	storage storage.Progress
	body    Body
}

func newProgress(t *testing.T, s storage.Progress) *progress {
	return &progress{t: t, storage: s, body: newBody("same-name")}
}

func (o *progress) load(ids ...string) map[string]storage.Record {
	o.t.Helper()
	unchanged(o.t, "the object", o.body)
	records, err := o.storage.Load(o.t.Context(), o.body, ids)
	if err != nil {
		o.t.Fatalf("Load: %v", err)
	}
	return records
}

func (o *progress) save(changed map[string]storage.Record, purge ...string) {
	o.t.Helper()
	patch := Patch{}
	o.saveInto(patch, changed, purge...)
	o.body = o.body.Apply(patch)
}

func (o *progress) saveInto(patch Patch, changed map[string]storage.Record, purge ...string) {
	o.t.Helper()
	unchanged(o.t, "the object", o.body)
	if err := o.storage.Save(o.t.Context(), o.body, patch, changed, purge); err != nil {
		o.t.Fatalf("Save: %v", err)
	}
}
