package storage_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/test/scaling"
	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

const (
	oldPrefix = "old.example.com"
	newPrefix = "new.example.com"
	managed   = "/kopf-managed"
)

func smart(prefix, key string) storage.Progress {
	return storage.SmartProgress(storage.NewAnnotationProgress(prefix), storage.NewStatusProgress(key))
}

// movedAll returns the object after a patch that saves some records and then moves all.
func movedAll(t *testing.T, body storagetest.Body, changed map[string]storage.Record, purge []string) storagetest.Body {
	t.Helper()
	p := storagetest.Patch{}
	progress := storage.MovedProgress(smart(newPrefix, newPrefix), smart(oldPrefix, oldPrefix), smart(storage.DefaultPrefix, "kopf"))
	base := storage.MovedBase(storage.NewAnnotationBase(newPrefix), storage.NewAnnotationBase(oldPrefix), storage.NewAnnotationBase(storage.DefaultPrefix))
	if err := progress.Save(t.Context(), body, p, changed, purge); err != nil {
		t.Fatal(err)
	}
	progress.(storage.Untoucher).Untouch(body, p)
	if err := progress.(interface {
		Move(context.Context, storage.Object, storage.Patch, []string) error
	}).Move(t.Context(), body, p, []string{"a", "b", "c"}); err != nil {
		t.Fatal(err)
	}
	if err := base.(interface {
		Move(context.Context, storage.Object, storage.Patch) error
	}).Move(t.Context(), body, p); err != nil {
		t.Fatal(err)
	}
	return body.Apply(p)
}

func TestStateOfFormerPlacesIsMoved(t *testing.T) {
	t.Parallel()
	const (
		one  = `{"retries":1,"success":false,"failure":false}`
		two  = `{"retries":2,"success":false,"failure":false}`
		base = "last-handled-configuration"
	)
	parent := `{"retries":1,"success":false,"failure":false,"subrefs":["c/x"]}`
	for name, test := range map[string]struct {
		before  []string
		changed map[string]storage.Record
		purge   []string
		want    []string
	}{
		"nothing":          {before: []string{"x", "1"}, want: []string{"x", "1"}},
		"a record":         {before: []string{oldPrefix + "/a", one, oldPrefix + managed, "yes"}, want: []string{newPrefix + "/a", one, newPrefix + managed, "yes"}},
		"a record of Kopf": {before: []string{"kopf.zalando.org/a", one}, want: []string{newPrefix + "/a", one, newPrefix + managed, "yes"}},
		"a changed record": {
			before:  []string{"kopf.zalando.org/a", one, "kopf.zalando.org/b", one},
			changed: map[string]storage.Record{"a": {Retries: 2}},
			want:    []string{newPrefix + "/a", two, newPrefix + "/b", one, newPrefix + managed, "yes"},
		},
		"a purged record":                   {before: []string{oldPrefix + "/a", one, oldPrefix + managed, "yes"}, purge: []string{"a"}},
		"a record that is saved and purged": {changed: map[string]storage.Record{"a": {}}, purge: []string{"a"}},
		"a record in two places": {
			before: []string{oldPrefix + "/a", one, newPrefix + "/a", two, newPrefix + managed, "yes"},
			want:   []string{newPrefix + "/a", two, newPrefix + managed, "yes"},
		},
		"a record in two former places": {
			before: []string{oldPrefix + "/a", one, "kopf.zalando.org/a", two},
			want:   []string{newPrefix + "/a", one, newPrefix + managed, "yes"},
		},
		"records of sub-handlers": {
			before: []string{"kopf.zalando.org/c", parent, "kopf.zalando.org/c.x", two},
			want:   []string{newPrefix + "/c", parent, newPrefix + "/c.x", two, newPrefix + managed, "yes"},
		},
		"a base with its binding": {
			before: []string{oldPrefix + "/" + base, "{}\n", oldPrefix + "/gopf.bound", "u.12345678", oldPrefix + managed, "yes"},
			want:   []string{newPrefix + "/" + base, "{}\n", newPrefix + "/gopf.bound", "u.12345678", newPrefix + managed, "yes"},
		},
		"a compressed base": {
			before: []string{oldPrefix + "/" + base + "-gz", "packed"},
			want:   []string{newPrefix + "/" + base + "-gz", "packed", newPrefix + managed, "yes"},
		},
		"an older base": {
			before: []string{oldPrefix + "/" + base, "1", oldPrefix + "/gopf.bound", "1.12345678", newPrefix + "/" + base, "2"},
			want:   []string{newPrefix + "/" + base, "2"},
		},
		"a binding without a base": {before: []string{oldPrefix + "/gopf.bound", "u.12345678"}},
		"the dummy of Kopf":        {before: []string{oldPrefix + "/touch-dummy", "2020", oldPrefix + managed, "yes"}},
		"annotations of users": {
			before: []string{oldPrefix + "/backup", "daily", oldPrefix + "/a", one, oldPrefix + managed, "yes"},
			want:   []string{oldPrefix + "/backup", "daily", oldPrefix + managed, "yes", newPrefix + "/a", one, newPrefix + managed, "yes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := movedAll(t, annotated(test.before...), test.changed, test.purge)
			if diff := cmp.Diff(annotated(test.want...), got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestRecordsInTheFormerStatusAreMoved(t *testing.T) {
	t.Parallel()
	body := storagetest.Body{"status": map[string]any{"kopf": map[string]any{"progress": map[string]any{"a": map[string]any{"retries": int64(3)}}}}}
	want := annotated(newPrefix+"/a", `{"retries":3,"success":false,"failure":false}`, newPrefix+managed, "yes")
	want["status"] = map[string]any{}
	if diff := cmp.Diff(want, movedAll(t, body, nil, nil)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	body["status"].(map[string]any)["kopf"].(map[string]any)["other"] = "x"
	if got, _ := movedAll(t, body, nil, nil).Lookup("status", "kopf", "other"); got != "x" {
		t.Errorf("another value under the key is %v", got)
	}
	if got, _ := movedAll(t, body, nil, []string{"a"}).Lookup("status", "kopf", "progress"); len(got.(map[string]any)) > 0 {
		t.Errorf("after a purge: %v", got)
	}
}

// Kopf stores long ids under two names. The second one depends on the prefix.
func TestNamesOfOldVersionsAreNotLeftBehind(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("long-", 12)
	id += "id"
	old := storage.NewAnnotationProgress(oldPrefix)
	present := storage.NewAnnotationProgress(newPrefix)
	present.V1 = false
	p := storagetest.Patch{}
	if err := old.Save(t.Context(), storagetest.Body{}, p, map[string]storage.Record{id: {Retries: 1}}, nil); err != nil {
		t.Fatal(err)
	}
	body := storagetest.Body{}.Apply(p)
	moved := storage.MovedProgress(present, old)
	p = storagetest.Patch{}
	if err := moved.(interface {
		Move(context.Context, storage.Object, storage.Patch, []string) error
	}).Move(t.Context(), body, p, []string{id}); err != nil {
		t.Fatal(err)
	}
	want := annotated(newPrefix+"/"+id, `{"retries":1,"success":false,"failure":false}`, newPrefix+managed, "yes")
	if diff := cmp.Diff(want, body.Apply(p)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestABaseThatDoesNotFitUnderItsNewNameStays(t *testing.T) {
	t.Parallel()
	present := storage.NewAnnotationBase("a-much-longer-name." + newPrefix)
	moved := storage.MovedBase(present, storage.NewAnnotationBase(oldPrefix))
	key := oldPrefix + "/last-handled-configuration"
	body := annotated(key, "{}", "other", strings.Repeat("x", storage.AnnotationsLimit-len(key)-len("{}other")))
	p := storagetest.Patch{}
	if err := moved.(interface {
		Move(context.Context, storage.Object, storage.Patch) error
	}).Move(t.Context(), body, p); err != nil || len(p) > 0 {
		t.Errorf("patch %v, error %v", p, err)
	}
	if _, found, err := moved.Load(t.Context(), body); !found || err != nil {
		t.Errorf("the base is not found: %v", err)
	}
}

func TestASavedBaseReplacesTheFormerOnes(t *testing.T) {
	t.Parallel()
	moved := storage.MovedBase(storage.NewAnnotationBase(newPrefix), storage.NewAnnotationBase(oldPrefix))
	// The former base leaves no space for the present one.
	body := annotated(oldPrefix+"/last-handled-configuration", strings.Repeat(" ", storage.AnnotationsLimit-100))
	p := storagetest.Patch{}
	if err := moved.Save(t.Context(), body, p, map[string]any{"spec": "x"}); err != nil {
		t.Fatal(err)
	}
	want := annotated(newPrefix+"/last-handled-configuration", `{"spec":"x"}`+"\n", newPrefix+managed, "yes")
	if diff := cmp.Diff(want, body.Apply(p)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestCopiesWithStateInFormerPlacesAreDetected(t *testing.T) {
	t.Parallel()
	old, present := storage.NewAnnotationBase(oldPrefix), storage.NewAnnotationBase(newPrefix)
	moved := storage.MovedBase(present, old).(storage.CopyDetector)
	save := func(base storage.Base, uid string) map[string]any {
		p := storagetest.Patch{}
		if err := base.Save(t.Context(), objectOf(uid, "Example", nil), p, map[string]any{"spec": uid}); err != nil {
			t.Fatal(err)
		}
		value, _ := p.Lookup("metadata", "annotations")
		return value.(map[string]any)
	}
	former := save(old, "one")
	if uid, copied := moved.Copied(objectOf("two", "Example", former)); !copied || uid != "one" {
		t.Errorf("a copy was not detected: %q, %v", uid, copied)
	}
	if _, copied := moved.Copied(objectOf("one", "Example", former)); copied {
		t.Error("the original was reported as a copy")
	}
	both := maps.Clone(former)
	maps.Copy(both, save(present, "two"))
	if _, copied := moved.Copied(objectOf("two", "Example", both)); copied {
		t.Error("an object with a base of its own was reported as a copy")
	}
}

func TestTracesOfFormerPlacesAreNotPartOfTheEssence(t *testing.T) {
	t.Parallel()
	essence := map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		"x": "1", oldPrefix + "/a": "1", oldPrefix + "/last-handled-configuration": "1", newPrefix + "/a": "1",
	}}, "status": map[string]any{"kopf": map[string]any{"progress": "1"}}}
	storage.MovedBase(storage.NewAnnotationBase(newPrefix), storage.NewAnnotationBase(oldPrefix)).Clean(essence)
	storage.MovedProgress(smart(newPrefix, newPrefix), smart(oldPrefix, "kopf")).Clean(essence)
	want := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"x": "1"}}}
	if diff := cmp.Diff(want, essence); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestMovesThatCouldLoseStateAreInvalid(t *testing.T) {
	t.Parallel()
	annotations := storage.NewAnnotationProgress(newPrefix)
	for name, test := range map[string]struct {
		storage any
		valid   bool
	}{
		"annotations":            {storage: storage.MovedProgress(annotations, smart(oldPrefix, "x")), valid: true},
		"from the status":        {storage: storage.MovedProgress(annotations, storage.NewStatusProgress("x")), valid: true},
		"to the status":          {storage: storage.MovedProgress(storage.NewStatusProgress("x"), annotations)},
		"from a database":        {storage: storage.MovedProgress(annotations, struct{ storage.Progress }{annotations})},
		"to a database":          {storage: storage.MovedProgress(struct{ storage.Progress }{annotations}, smart(oldPrefix, "x"))},
		"to the same prefix":     {storage: storage.MovedProgress(annotations, smart(newPrefix, "x"))},
		"a base":                 {storage: storage.MovedBase(storage.NewAnnotationBase(newPrefix), storage.NewAnnotationBase(oldPrefix)), valid: true},
		"a base, same prefix":    {storage: storage.MovedBase(storage.NewAnnotationBase(newPrefix), storage.NewAnnotationBase(newPrefix))},
		"a base, invalid prefix": {storage: storage.MovedBase(storage.NewAnnotationBase(newPrefix), storage.NewAnnotationBase(""))},
	} {
		if err := test.storage.(storage.Validator).Validate(); (err == nil) != test.valid {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Any client that may edit an object can forge records: many, or a long chain of sub-handlers.
func TestMovingManyRecords(t *testing.T) {
	for name, refer := range map[string]func(i, n int) []string{
		"of one handler": func(i, n int) (subs []string) {
			for j := 1; i == 0 && j < n; j++ {
				subs = append(subs, fmt.Sprint("x", j))
			}
			return subs
		},
		"of a chain": func(i, _ int) []string { return []string{fmt.Sprint("x", i+1)} },
	} {
		t.Run(name, func(t *testing.T) {
			scaling.Check(t, 100, func(n int) {
				annotations := map[string]any{}
				for i := range n {
					annotations[fmt.Sprint(oldPrefix, "/x", i)] = storage.Record{Retries: 1, Subrefs: refer(i, n)}.Encode(false)
				}
				body := storagetest.Body{"metadata": map[string]any{"annotations": annotations}}
				p := storagetest.Patch{}
				progress := storage.MovedProgress(smart(newPrefix, newPrefix), smart(oldPrefix, oldPrefix))
				if err := progress.(interface {
					Move(context.Context, storage.Object, storage.Patch, []string) error
				}).Move(t.Context(), body, p, []string{"x0"}); err != nil {
					t.Fatal(err)
				}
				for key := range body.Apply(p)["metadata"].(map[string]any)["annotations"].(map[string]any) {
					if !strings.HasPrefix(key, newPrefix) {
						t.Fatalf("%s is left", key)
					}
				}
			})
		})
	}
}
