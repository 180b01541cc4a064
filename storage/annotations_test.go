package storage_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

func annotated(pairs ...string) storagetest.Body {
	return storagetest.Body{"metadata": map[string]any{"annotations": pairwise(pairs)}}
}

func annotating(pairs ...string) storagetest.Patch {
	return storagetest.Patch{"metadata": map[string]any{"annotations": pairwise(pairs)}}
}

// pairwise returns an object with annotations from keys and values. "null" means a null.
func pairwise(pairs []string) map[string]any {
	object := make(map[string]any)
	for i := 0; i < len(pairs); i += 2 {
		object[pairs[i]] = pairs[i+1]
		if pairs[i+1] == "null" {
			object[pairs[i]] = nil
		}
	}
	return object
}

const zeroRecord = `{"retries":0,"success":false,"failure":false}`

func TestOtherPrefixesGetAMarkerOnce(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		prefix      string
		body        storagetest.Body
		patch, want storagetest.Patch
	}{
		"own domain":           {prefix: "op.example.com", want: annotating("op.example.com/id", zeroRecord, "op.example.com/kopf-managed", "yes")},
		"marked in the object": {prefix: "op.example.com", body: annotated("op.example.com/kopf-managed", "any"), want: annotating("op.example.com/id", zeroRecord)},
		"marked in the patch": {prefix: "op.example.com", patch: annotating("op.example.com/kopf-managed", "mine"),
			want: annotating("op.example.com/id", zeroRecord, "op.example.com/kopf-managed", "mine")},
		"known domain":          {prefix: "kopf.zalando.org", want: annotating("kopf.zalando.org/id", zeroRecord)},
		"similar domain":        {prefix: "kopf.example.com", want: annotating("kopf.example.com/id", zeroRecord)},
		"known one's subdomain": {prefix: "x.kopf.zalando.org", want: annotating("x.kopf.zalando.org/id", zeroRecord, "x.kopf.zalando.org/kopf-managed", "yes")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patch := tc.patch
			if patch == nil {
				patch = storagetest.Patch{}
			}
			s := storage.NewAnnotationProgress(tc.prefix)
			if err := s.Save(t.Context(), tc.body, patch, map[string]storage.Record{"id": {}}, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, patch); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestOldKeysAreReadAndPurged(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("x", 64)
	keys := storage.Keys(storage.DefaultPrefix, id, false, true)
	body := annotated(keys[1], `{"retries":7}`)
	s := storage.NewAnnotationProgress(storage.DefaultPrefix)
	records, err := s.Load(t.Context(), body, []string{id})
	if err != nil || records[id].Retries != 7 {
		t.Errorf("got %v, error %v", records, err)
	}
	patch := storagetest.Patch{}
	if err := s.Save(t.Context(), body, patch, map[string]storage.Record{id: {}}, []string{id}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(annotating(keys[1], "null"), patch); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	s.V1 = false
	if records, err := s.Load(t.Context(), body, []string{id}); err != nil || len(records) > 0 {
		t.Errorf("without old keys: got %v, error %v", records, err)
	}
}

func TestErrorsNameUnreadableAnnotations(t *testing.T) {
	t.Parallel()
	body := annotated("kopf.zalando.org/id", "oops", "kopf.zalando.org/last-handled-configuration", "oops")
	_, err := storage.DefaultProgress().Load(t.Context(), body, []string{"id"})
	if err == nil || !strings.Contains(err.Error(), "kopf.zalando.org/id") {
		t.Errorf("progress: got %v", err)
	}
	_, _, err = storage.DefaultBase().Load(t.Context(), body)
	if err == nil || !strings.Contains(err.Error(), "kopf.zalando.org/last-handled-configuration") {
		t.Errorf("base: got %v", err)
	}
}

func TestAnnotationsCopiedFromDeploymentsAreIgnored(t *testing.T) {
	t.Parallel()
	body := annotated("my.op/id", `{"retries":1}`, "my.op/last-handled-configuration", `{"of":"the deployment"}`)
	body["kind"] = "ReplicaSet"
	body["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"kind": "Deployment"}}

	progress, base := storage.NewAnnotationProgress("my.op"), storage.NewAnnotationBase("my.op")
	if records, err := progress.Load(t.Context(), body, []string{"id"}); err != nil || len(records) > 0 {
		t.Errorf("progress: got %v, error %v", records, err)
	}
	if essence, found, err := base.Load(t.Context(), body); err != nil || found {
		t.Errorf("base: got %v, error %v", essence, err)
	}
	patch := storagetest.Patch{}
	if err := base.Save(t.Context(), body, patch, map[string]any{}); err != nil {
		t.Fatal(err)
	}
	want := annotating("my.op/last-handled-configuration-ofDRS", "{}\n", "my.op/kopf-managed", "yes")
	if diff := cmp.Diff(want, patch); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	essence := annotated("my.op/last-handled-configuration", "x", "my.op/last-handled-configuration-ofDRS", "x")
	base.CleanObject(body, essence)
	if diff := cmp.Diff(annotated("my.op/last-handled-configuration", "x"), essence); diff != "" {
		t.Errorf("CleanObject: -want, +got:\n%s", diff)
	}
	base.Clean(essence)
	if diff := cmp.Diff(storagetest.Body{}, essence); diff != "" {
		t.Errorf("Clean: -want, +got:\n%s", diff)
	}
}

func TestTouchesOfKopfAreRemoved(t *testing.T) {
	t.Parallel()
	touched := annotated("kopf.zalando.org/touch-dummy", "2026-01-01T00:00:10+00:00", "op.example.com/touch-dummy", "x")
	touched["status"] = map[string]any{"kopf": map[string]any{"dummy": "x"}}
	cases := map[string]struct {
		storage storage.Progress
		body    storagetest.Body
		want    storagetest.Patch
	}{
		"default": {storage: storage.DefaultProgress(), body: touched, want: annotating("kopf.zalando.org/touch-dummy", "null")},
		"own domain": {storage: storage.NewAnnotationProgress("op.example.com"), body: touched,
			want: annotating("op.example.com/touch-dummy", "null", "op.example.com/kopf-managed", "yes")},
		"status": {storage: storage.NewStatusProgress("kopf"), body: touched,
			want: storagetest.Patch{"status": map[string]any{"kopf": map[string]any{"dummy": nil}}}},
		"not touched":               {storage: storage.DefaultProgress(), body: annotated("a", "b"), want: storagetest.Patch{}},
		"not touched in the status": {storage: storage.NewStatusProgress("kopf"), want: storagetest.Patch{}},
	}
	for name, tc := range cases {
		patch := storagetest.Patch{}
		tc.storage.(storage.Untoucher).Untouch(tc.body, patch)
		if diff := cmp.Diff(tc.want, patch); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
}

func TestIgnoredFieldsAreCleanedOff(t *testing.T) {
	t.Parallel()
	annotations, status := storage.NewAnnotationBase("op.example.com"), storage.NewStatusBase("op")
	annotations.Ignored = [][]string{{"spec", "replicas"}, {"spec", "text", "below"}, {"metadata", "annotations", "a.b/c"}}
	status.Ignored = annotations.Ignored
	for name, s := range map[string]storage.Base{"annotations": annotations, "status": status, "several": storage.MultiBase(annotations, status)} {
		essence := annotated("a.b/c", "d")
		essence["spec"] = map[string]any{"replicas": int64(1), "text": "blocks the way"}
		s.Clean(essence)
		want := storagetest.Body{"spec": map[string]any{"text": "blocks the way"}}
		if diff := cmp.Diff(want, essence); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
}
