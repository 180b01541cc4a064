package storagetest

import (
	"fmt"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/storage"
)

// Base tests that the storage fulfills the contract of [storage.Base]. The storage may
// contain other data: the tests use their own objects.
func Base(t *testing.T, s storage.Base) {
	t.Run("NothingIsKnownAtFirst", func(t *testing.T) {
		newBase(t, s).absent()
	})
	t.Run("EveryValueIsKept", func(t *testing.T) {
		for name, want := range essences() {
			o := newBase(t, s)
			o.save(want)
			t.Log(name)
			sameEssence(t, want, o.load())
		}
	})
	t.Run("TheLastEssenceCounts", func(t *testing.T) {
		o := newBase(t, s)
		o.save(essences()["rich"])
		o.save(essences()["plain"])
		sameEssence(t, essences()["plain"], o.load())
		o.save(map[string]any{})
		sameEssence(t, map[string]any{}, o.load())
	})
	t.Run("ALargeEssenceIsStoredOrRejected", func(t *testing.T) {
		o := newBase(t, s)
		o.save(essences()["plain"])
		large := map[string]any{"data": map[string]any{"file": strings.Repeat("0123456789", 50_000)}}
		patch := Patch{}
		if err := s.Save(t.Context(), o.body, patch, large); err != nil {
			t.Logf("rejected: %v", err)
			return
		}
		o.body = o.body.Apply(patch)
		sameEssence(t, large, o.load())
		o.save(essences()["plain"])
		sameEssence(t, essences()["plain"], o.load())
	})
	t.Run("ObjectsAreKeptApart", func(t *testing.T) {
		// The name is the same, as if the object were deleted and created again.
		one, two := newBase(t, s), newBase(t, s)
		one.save(essences()["plain"])
		two.absent()
		two.save(essences()["rich"])
		sameEssence(t, essences()["plain"], one.load())
	})
	t.Run("ConcurrentObjectsAreSupported", func(t *testing.T) {
		for i := range 8 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				o := newBase(t, s)
				want := map[string]any{"spec": map[string]any{"n": int64(i)}}
				o.save(want)
				sameEssence(t, want, o.load())
			})
		}
	})
	t.Run("SavedStateIsNotPartOfTheEssence", func(t *testing.T) {
		o := newBase(t, s)
		clean := func(fields ...jsonvalue.Path) map[string]any {
			e := essence.Build(o.body, fields)
			s.Clean(e)
			return e
		}
		before, beforeStatus := clean(), clean(jsonvalue.Path{"status"})
		o.save(essences()["plain"])
		sameEssence(t, before, clean())
		sameEssence(t, beforeStatus, clean(jsonvalue.Path{"status"}))

		// A handler for all annotations must not be called because of ours.
		annotations := jsonvalue.Path{"metadata", "annotations"}
		before = clean(annotations)
		o.save(essences()["rich"])
		sameEssence(t, before, clean(annotations))
		if _, ok := jsonvalue.Lookup(before, "metadata", "annotations", "example.com/note"); !ok {
			t.Errorf("Clean removed too much: %v", before)
		}
	})
}

func essences() map[string]map[string]any {
	return map[string]map[string]any{
		"empty": {},
		"plain": {"spec": map[string]any{"size": "1Gi"}},
		"rich": {
			"metadata": map[string]any{
				"labels":      map[string]any{"app": "demo", "app.kubernetes.io/name": "demo"},
				"annotations": map[string]any{"note": "<b> & «жирный» \u2028 😀 \x7f"},
				"generation":  int64(3),
			},
			"spec": map[string]any{
				"null": nil, "true": true, "false": false, "empty": "", "object": map[string]any{}, "list": []any{},
				"integer": int64(9007199254740993), "negative": int64(-1), "float": 1.5, "tiny": 1e-7, "huge": 1e300,
				"nested":                []any{map[string]any{"a": []any{nil, int64(1), "x"}}},
				"dotted.key/with~signs": "\"quoted\"\n\\",
			},
			"data":   map[string]any{"ключ": "значение"},
			"status": map[string]any{"phase": "Ready"},
		},
	}
}

func sameEssence(t *testing.T, want, got map[string]any) {
	t.Helper()
	if !diff.Equal(want, got) {
		t.Errorf("the essence differs: %s", diff.Of(want, got))
	}
}

// base is an object to which every patch is applied immediately.
type base struct {
	t       *testing.T
	storage storage.Base
	body    Body
}

func newBase(t *testing.T, s storage.Base) *base {
	return &base{t: t, storage: s, body: newBody("same-name")}
}

func (o *base) load() map[string]any {
	o.t.Helper()
	unchanged(o.t, "the object", o.body)
	e, found, err := o.storage.Load(o.t.Context(), o.body)
	if err != nil || !found {
		o.t.Fatalf("Load: found %v, error %v", found, err)
	}
	return e
}

func (o *base) absent() {
	o.t.Helper()
	if e, found, err := o.storage.Load(o.t.Context(), o.body); err != nil || found {
		o.t.Errorf("Load: found %v, error %v, essence %v", found, err, e)
	}
}

func (o *base) save(e map[string]any) {
	o.t.Helper()
	unchanged(o.t, "the object", o.body)
	unchanged(o.t, "the essence", e)
	patch := Patch{}
	if err := o.storage.Save(o.t.Context(), o.body, patch, e); err != nil {
		o.t.Fatalf("Save: %v", err)
	}
	o.body = o.body.Apply(patch)
}
