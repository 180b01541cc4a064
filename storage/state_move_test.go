package storage_test

import (
	"context"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

func TestStateIsMovedToTheStatus(t *testing.T) {
	t.Parallel()
	type fields = map[string]any
	record := fields{"purpose": "update", "retries": int64(1), "success": false, "failure": false}
	saved := fields{"started": nil, "stopped": nil, "delayed": nil, "message": nil, "subrefs": nil}
	maps.Copy(saved, record)
	const digestOfNothing = "e3b0c442"
	for name, test := range map[string]struct {
		annotations, status fields
		want                fields // the patch of the status
	}{
		"nothing":             {},
		"already there":       {status: fields{"things": fields{"last-handled-configuration": spec1}}},
		"a foreign key":       {status: fields{"other": fields{"progress": fields{"x": record}}}},
		"a base":              {annotations: fields{annotationBase: spec1}, want: fields{"things": fields{"last-handled-configuration": spec1, "moved": digestOfSpec1}}},
		"a record":            {annotations: fields{"kopf.zalando.org/x": recordOfHandler}, want: fields{"things": fields{"progress": fields{"x": saved}, "moved": digestOfNothing}}},
		"a former key":        {status: fields{"old": fields{"last-handled-configuration": spec2}}, want: fields{"things": fields{"last-handled-configuration": spec2}, "old": nil}},
		"a record of Kopf":    {status: fields{"kopf": fields{"progress": fields{"x": record}}}, want: fields{"things": fields{"progress": fields{"x": saved}, "moved": digestOfNothing}, "kopf": fields{"progress": nil}}},
		"a record of another": {status: fields{"kopf": fields{"progress": fields{"y": record}}}, want: fields{"things": fields{"moved": digestOfNothing}, "kopf": fields{"progress": nil}}},
	} {
		o := storagetest.Body{"metadata": fields{"uid": "u", "annotations": test.annotations}, "status": test.status}
		progress, _ := state("things", "old").Storages(true)
		p := storagetest.Patch{}
		err := progress.(interface {
			MoveToStatus(context.Context, storage.Object, storage.Patch, []string) error
		}).MoveToStatus(t.Context(), o, p, []string{"x"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, _ := p["status"].(fields)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

func TestAFormerBaseIsRemovedIfANewerOneExists(t *testing.T) {
	t.Parallel()
	full := make([]byte, storage.AnnotationsLimit)
	for i := range full {
		full[i] = 'x'
	}
	const base = "/last-handled-configuration"
	body := storagetest.Body{"metadata": map[string]any{"uid": "u", "annotations": map[string]any{
		"example.com/full": string(full), newPrefix + base: spec2, oldPrefix + base: spec1,
	}}}
	after, _ := movedAll(t, body, nil, nil).Lookup("metadata", "annotations")
	if all := after.(map[string]any); all[oldPrefix+base] != nil || all[newPrefix+base] != spec2 {
		t.Errorf("bases %v and %v", all[oldPrefix+base], all[newPrefix+base])
	}
}

func TestAnEssenceWithoutStateHasNoEmptyStatus(t *testing.T) {
	t.Parallel()
	_, base := state("things").Storages(true)
	essence := map[string]any{"spec": map[string]any{"a": 1}, "status": map[string]any{"things": map[string]any{"progress": map[string]any{"x": map[string]any{}}, "moved": "d"}}}
	base.Clean(essence)
	if diff := cmp.Diff(map[string]any{"spec": map[string]any{"a": 1}}, essence); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
