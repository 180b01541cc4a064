package vectors_test

import (
	"slices"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

func essenceOf(t *testing.T, v vector) {
	c := decode[struct {
		DiffbaseStorage map[string]any   `json:"diffbase_storage"`
		ProgressStorage map[string]any   `json:"progress_storage"`
		ExtraFields     []any            `json:"extra_fields"`
		Body            storagetest.Body `json:"body"`
		Essence         map[string]any
		Cleared         map[string]any
		Error           string
	}](t, v.JSON)
	var fields []jsonvalue.Path
	for _, field := range c.ExtraFields {
		fields = append(fields, kopfPath(field))
	}
	base, progress := baseOf(t, c.DiffbaseStorage), progressOf(t, c.ProgressStorage)
	nowhere := storage.MultiProgress()
	build := func(fields []jsonvalue.Path, progress storage.Progress) map[string]any {
		built := essence.Build(c.Body, fields)
		if body, err := object.FromMap(c.Body); err != nil {
			t.Error(err)
		} else {
			sameEssence(t, built, essence.Of(body, fields))
		}
		essence.Clean(c.Body, built, base, progress)
		return built
	}
	if c.Error != "" {
		// a field that is blocked by something other than an object breaks
		// Kopf. To us it is absent: the essence is as if nobody had asked for it.
		present := slices.DeleteFunc(slices.Clone(fields), func(field jsonvalue.Path) bool {
			_, ok := jsonvalue.Lookup(map[string]any(c.Body), field...)
			return !ok
		})
		sameEssence(t, build(present, nowhere), build(fields, nowhere))
		return
	}
	if storage.Marked(c.Body) && c.DiffbaseStorage["type"] == "multi" {
		// several storages together do not recognise ReplicaSets of Deployments
		// in Kopf and leave their own marked keys in the essence. Ours do not.
		built := build(fields, nowhere)
		for key := range annotationsOf(built) {
			if strings.Contains(key, "-ofDRS") {
				t.Errorf("own annotation %s is left", key)
			}
		}
		sameEssence(t, unmarked(c.Essence), unmarked(built))
		return
	}
	sameEssence(t, c.Essence, build(fields, nowhere))
	sameEssence(t, c.Cleared, build(fields, progress))
}

func sameEssence(t *testing.T, want, got map[string]any) {
	t.Helper()
	if !diff.Equal(want, got) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// unmarked removes the last-handled configurations and what that leaves empty.
func unmarked(e map[string]any) map[string]any {
	annotations := annotationsOf(e)
	for key := range annotations {
		if strings.Contains(key, "/last-handled-configuration") {
			delete(annotations, key)
		}
	}
	storage.Tidy(e)
	return e
}

func annotationsOf(e map[string]any) map[string]any {
	value, _ := jsonvalue.Lookup(e, "metadata", "annotations")
	annotations, _ := value.(map[string]any)
	return annotations
}
