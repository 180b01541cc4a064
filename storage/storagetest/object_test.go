package storagetest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

func TestApplyMergesPatches(t *testing.T) {
	t.Parallel()
	body := storagetest.Body{"keep": 1, "gone": 1, "in": map[string]any{"keep": 1, "gone": 1}, "list": []any{1}}
	patch := storagetest.Patch{}
	patch.Set(nil, "gone")
	patch.Set(nil, "in", "gone")
	patch.Set(nil, "never", "there")
	patch.Set([]any{2}, "list")
	patch.Set(1, "a", "new", "one")
	patch.Set(1, "taken", "back")
	patch.Remove("taken", "back")
	want := storagetest.Body{
		"keep": 1, "in": map[string]any{"keep": 1}, "never": map[string]any{}, "list": []any{2},
		"a": map[string]any{"new": map[string]any{"one": 1}},
	}
	if diff := cmp.Diff(want, body.Apply(patch)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, ok := body["gone"]; !ok || len(body["in"].(map[string]any)) != 2 {
		t.Errorf("the object itself was changed: %v", body)
	}
}

func TestIdentityOfABody(t *testing.T) {
	t.Parallel()
	body := storagetest.Body{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "n", "namespace": "ns", "uid": "u"}}
	want := storage.Identity{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "n", UID: "u"}
	if got := body.Identity(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := (storagetest.Body{}).Identity(); got != (storage.Identity{}) {
		t.Errorf("got %+v, want nothing", got)
	}
}
