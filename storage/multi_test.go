package storage_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

func inStatus(body storagetest.Body, id string, record map[string]any) storagetest.Body {
	return body.Apply(storagetest.Patch{"status": map[string]any{"kopf": map[string]any{"progress": map[string]any{id: record}}}})
}

func TestRecordsOfOldVersionsAreFoundInTheStatus(t *testing.T) {
	t.Parallel()
	body := inStatus(annotated("kopf.zalando.org/both", `{"retries":1}`), "both", map[string]any{"retries": int64(2)})
	body = inStatus(body, "old", map[string]any{"retries": int64(3)})
	records, err := storage.DefaultProgress().Load(t.Context(), body, []string{"both", "old", "none"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]storage.Record{"both": {Retries: 1}, "old": {Retries: 3}}
	if diff := cmp.Diff(want, records); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestRecordsInTheStatusAreOnlyPurged(t *testing.T) {
	t.Parallel()
	body := inStatus(storagetest.Body{}, "old", map[string]any{"retries": int64(3)})
	patch := storagetest.Patch{}
	changed := map[string]storage.Record{"new": {}}
	if err := storage.DefaultProgress().Save(t.Context(), body, patch, changed, []string{"old"}); err != nil {
		t.Fatal(err)
	}
	want := annotating("kopf.zalando.org/new", zeroRecord)
	want["status"] = map[string]any{"kopf": map[string]any{"progress": map[string]any{"old": nil}}}
	if diff := cmp.Diff(want, patch); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestAStatusThatIsNotAnObjectHasNoRecords(t *testing.T) {
	t.Parallel()
	body := storagetest.Body{"status": "oops"}
	if records, err := storage.DefaultProgress().Load(t.Context(), body, []string{"id"}); err != nil || len(records) > 0 {
		t.Errorf("got %v, error %v", records, err)
	}
	essence := map[string]any{"status": "oops"}
	storage.DefaultProgress().Clean(essence)
	if diff := cmp.Diff(map[string]any{"status": "oops"}, essence); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestLaterStoragesAreNotReadForFoundRecords(t *testing.T) {
	t.Parallel()
	// The record in the status is damaged, but it is not needed.
	body := inStatus(annotated("kopf.zalando.org/id", `{"retries":1}`), "id", map[string]any{"retries": "many"})
	records, err := storage.DefaultProgress().Load(t.Context(), body, []string{"id"})
	if err != nil || records["id"].Retries != 1 {
		t.Errorf("got %v, error %v", records, err)
	}
}

func TestBasesMoveFromOneStorageToAnother(t *testing.T) {
	t.Parallel()
	moving := storage.MultiBase(storage.NewAnnotationBase("op.example.com"), storage.NewStatusBase("kopf"))
	body := storagetest.Body{"status": map[string]any{"kopf": map[string]any{"last-handled-configuration": `{"spec":"old"}`}}}
	got, found, err := moving.Load(t.Context(), body)
	if err != nil || !found || !cmp.Equal(map[string]any{"spec": "old"}, got) {
		t.Errorf("got %v, found %v, error %v", got, found, err)
	}
	patch := storagetest.Patch{}
	if err := moving.Save(t.Context(), body, patch, map[string]any{"spec": "new"}); err != nil {
		t.Fatal(err)
	}
	want := annotating("op.example.com/last-handled-configuration", `{"spec":"new"}`+"\n", "op.example.com/kopf-managed", "yes")
	want["status"] = map[string]any{"kopf": map[string]any{"last-handled-configuration": `{"spec":"new"}`}}
	if diff := cmp.Diff(want, patch); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestAMalformedStatusIsAnError(t *testing.T) {
	t.Parallel()
	s := storage.NewStatusBase("kopf")
	for name, value := range map[string]any{"number": int64(1), "broken": "oops", "list": "[]"} {
		body := storagetest.Body{"status": map[string]any{"kopf": map[string]any{"last-handled-configuration": value}}}
		if got, found, err := s.Load(t.Context(), body); err == nil || found {
			t.Errorf("%s: got %v, found %v, error %v", name, got, found, err)
		}
	}
}

// broken is a storage whose database is down.
type broken struct{}

var errDown = errors.New("the database is down")

func (broken) Load(context.Context, storage.Object, []string) (map[string]storage.Record, error) {
	return nil, errDown
}

func (broken) Save(context.Context, storage.Object, storage.Patch, map[string]storage.Record, []string) error {
	return errDown
}

func (broken) Clean(map[string]any) {}

type brokenBase struct{ broken }

func (brokenBase) Load(context.Context, storage.Object) (map[string]any, bool, error) {
	return nil, false, errDown
}

func (brokenBase) Save(context.Context, storage.Object, storage.Patch, map[string]any) error {
	return errDown
}

func TestTheErrorOfOneStorageIsReturned(t *testing.T) {
	t.Parallel()
	progress := storage.MultiProgress(storage.DefaultProgress(), storage.RetiredProgress(broken{}))
	if _, err := progress.Load(t.Context(), storagetest.Body{}, []string{"id"}); !errors.Is(err, errDown) {
		t.Errorf("Progress.Load: got %v", err)
	}
	if err := progress.Save(t.Context(), storagetest.Body{}, storagetest.Patch{}, nil, nil); !errors.Is(err, errDown) {
		t.Errorf("Progress.Save: got %v", err)
	}
	base := storage.MultiBase(storage.DefaultBase(), brokenBase{})
	if _, _, err := base.Load(t.Context(), storagetest.Body{}); !errors.Is(err, errDown) {
		t.Errorf("Base.Load: got %v", err)
	}
	if err := base.Save(t.Context(), storagetest.Body{}, storagetest.Patch{}, nil); !errors.Is(err, errDown) {
		t.Errorf("Base.Save: got %v", err)
	}
}

func TestADamagedRecordIsReadFromTheNextStorage(t *testing.T) {
	t.Parallel()
	first, second := storage.NewStatusProgress("first"), storage.NewStatusProgress("second")
	both := storage.MultiProgress(first, second)
	body := storagetest.Body{"status": map[string]any{
		"first":  map[string]any{"progress": map[string]any{"a": "damaged", "b": "damaged", "c": map[string]any{"retries": int64(3)}}},
		"second": map[string]any{"progress": map[string]any{"a": map[string]any{"retries": int64(1)}, "b": "damaged", "c": "damaged"}},
	}}
	records, err := both.Load(t.Context(), body, []string{"a", "b", "c"})
	var malformed *storage.MalformedError
	if !errors.As(err, &malformed) || !slices.Equal(malformed.IDs, []string{"b"}) {
		t.Errorf("error %v, ids %v", err, malformed)
	}
	if len(records) != 2 || records["a"].Retries != 1 || records["c"].Retries != 3 {
		t.Errorf("records %v", records)
	}
}
