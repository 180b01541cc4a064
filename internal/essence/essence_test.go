package essence_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object
}

func TestBuildKeepsTheFieldsThatUsersChange(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ body, want string }{
		"everything": {
			body: `{"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "uid": "u", "generation": 3, "finalizers": ["f"],
				"managedFields": [{}], "labels": {"a": "b"}, "annotations": {"note": "keep"}},
				"spec": {"a": [1, {"b": null}], "c": {}}, "data": {"k": "v"}, "status": {"phase": "Ready"}}`,
			want: `{"metadata": {"labels": {"a": "b"}, "annotations": {"note": "keep"}}, "spec": {"a": [1, {"b": null}], "c": {}}, "data": {"k": "v"}}`,
		},
		"nothing":          {body: `{}`, want: `{}`},
		"no essence":       {body: `{"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"}, "status": {}}`, want: `{}`},
		"empty stanzas":    {body: `{"metadata": {"labels": {}, "annotations": {}}, "spec": {}}`, want: `{"spec": {}}`},
		"null stanzas":     {body: `{"metadata": {"labels": null, "annotations": null}, "spec": null, "status": null}`, want: `{"spec": null}`},
		"null metadata":    {body: `{"metadata": null, "spec": 1}`, want: `{"spec": 1}`},
		"kubectl's copy":   {body: `{"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kubectl.kubernetes.io/restartedAt": "x"}}}`, want: `{"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "x"}}}`},
		"Kopf's own":       {body: `{"metadata": {"annotations": {"kopf.zalando.org/x": "1", "a.b.kopf.zalando.org/x": "1"}}}`, want: `{}`},
		"similar prefixes": {body: `{"metadata": {"annotations": {"notkopf.zalando.org/x": "1", "kopf.dev/x": "1", "kopf.zalando.org": "1"}}}`, want: `{"metadata": {"annotations": {"notkopf.zalando.org/x": "1", "kopf.dev/x": "1", "kopf.zalando.org": "1"}}}`},
		"marked as managed": {
			body: `{"metadata": {"annotations": {"op.example.com/kopf-managed": "no", "op.example.com/a/b": "1", "op.example.com.other/x": "1", "kopf-managed": "yes"}}}`,
			want: `{"metadata": {"annotations": {"op.example.com.other/x": "1", "kopf-managed": "yes"}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(parse(t, tc.want), essence.Build(parse(t, tc.body), nil)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestBuildKeepsTheFieldsOfHandlers(t *testing.T) {
	t.Parallel()
	body := `{"kind": "X", "metadata": {"name": "n", "labels": {"a": "b"}, "annotations": {"note": "keep", "kopf.zalando.org/x": "1"}},
		"spec": {"text": "s", "null": null}, "status": {"phase": "Ready", "zero": 0, "conditions": [{"type": "x"}]}}`
	plain := `"spec": {"text": "s", "null": null}`
	metadata := `"metadata": {"labels": {"a": "b"}, "annotations": {"note": "keep"}}`
	cases := map[string]struct {
		field jsonvalue.Path
		want  string
	}{
		"part of the status":  {field: jsonvalue.Path{"status", "phase"}, want: `{` + plain + `, ` + metadata + `, "status": {"phase": "Ready"}}`},
		"whole status":        {field: jsonvalue.Path{"status"}, want: `{` + plain + `, ` + metadata + `, "status": {"phase": "Ready", "zero": 0, "conditions": [{"type": "x"}]}}`},
		"system's metadata":   {field: jsonvalue.Path{"metadata", "name"}, want: `{` + plain + `, "metadata": {"name": "n", "labels": {"a": "b"}, "annotations": {"note": "keep"}}}`},
		"operators' metadata": {field: jsonvalue.Path{"metadata", "annotations", "kopf.zalando.org/x"}, want: `{` + plain + `, "metadata": {"labels": {"a": "b"}, "annotations": {"note": "keep", "kopf.zalando.org/x": "1"}}}`},
		"kind":                {field: jsonvalue.Path{"kind"}, want: `{"kind": "X", ` + plain + `, ` + metadata + `}`},
		"kept anyway":         {field: jsonvalue.Path{"spec", "text"}, want: `{` + plain + `, ` + metadata + `}`},
		"absent":              {field: jsonvalue.Path{"status", "absent", "deep"}, want: `{` + plain + `, ` + metadata + `}`},
		"blocked by a text":   {field: jsonvalue.Path{"spec", "text", "deep"}, want: `{` + plain + `, ` + metadata + `}`},
		"blocked by a null":   {field: jsonvalue.Path{"spec", "null", "deep"}, want: `{` + plain + `, ` + metadata + `}`},
		"no field":            {field: nil, want: `{` + plain + `, ` + metadata + `}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := essence.Build(parse(t, body), []jsonvalue.Path{tc.field})
			if diff := cmp.Diff(parse(t, tc.want), got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestEssencesShareNoValuesWithTheBody(t *testing.T) {
	t.Parallel()
	text := `{"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {"list": [{"x": 1}]}, "status": {"x": {"y": 1}}}`
	body := parse(t, text)
	built := essence.Build(body, []jsonvalue.Path{{"status"}, {"status", "x"}})
	var spoil func(v any)
	spoil = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, item := range v {
				spoil(item)
			}
			v["spoilt"] = true
		case []any:
			for i, item := range v {
				spoil(item)
				v[i] = "spoilt"
			}
		}
	}
	spoil(built)
	if diff := cmp.Diff(parse(t, text), body); diff != "" {
		t.Errorf("the body was modified: -want, +got:\n%s", diff)
	}
}

func TestCleanRemovesTheTracesOfStorages(t *testing.T) {
	t.Parallel()
	body := storagetest.Body(parse(t, `{"metadata": {"annotations": {
		"base.op/last-handled-configuration": "{}", "base.op/other": "x", "progress.op/fn": "{}", "note": "keep"}},
		"status": {"kopf": {"progress": {"fn": {}}}, "phase": "Ready"}}`))
	built := essence.Build(body, []jsonvalue.Path{{"status"}})
	base := storage.NewAnnotationBase("base.op")
	progress := storage.SmartProgress(storage.NewAnnotationProgress("progress.op"), storage.NewStatusProgress("kopf"))
	essence.Clean(body, built, base, progress)
	want := parse(t, `{"metadata": {"annotations": {"base.op/other": "x", "note": "keep"}}, "status": {"phase": "Ready"}}`)
	if diff := cmp.Diff(want, built); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestReplicaSetsKeepTheStateOfTheirDeployment(t *testing.T) {
	t.Parallel()
	body := storagetest.Body(parse(t, `{"kind": "ReplicaSet", "metadata": {"ownerReferences": [{"kind": "Deployment"}], "annotations": {
		"my.op/last-handled-configuration": "{}", "my.op/last-handled-configuration-ofDRS": "{}"}},
		"status": {"kopf": {"last-handled-configuration": "{}"}}}`))
	want := parse(t, `{"metadata": {"annotations": {"my.op/last-handled-configuration": "{}"}}}`)
	for name, base := range map[string]storage.Base{
		"one":     storage.NewAnnotationBase("my.op"),
		"several": storage.MultiBase(storage.NewStatusBase("kopf"), storage.NewAnnotationBase("my.op")),
	} {
		built := essence.Build(body, nil)
		essence.Clean(body, built, base, storage.DefaultProgress())
		if diff := cmp.Diff(want, built); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
}

func TestDroppedMembersAreNotCopied(t *testing.T) {
	body := parse(t, `{"metadata": {"name": "n", "managedFields": [{"a": {"b": {"c": {}}}}]}, "spec": 1, "status": {"a": {"b": [{}, {}, {}]}}}`)
	small := parse(t, `{"metadata": {"name": "n"}, "spec": 1, "status": {}}`)
	cost := func(body map[string]any) float64 {
		return testing.AllocsPerRun(100, func() { essence.Build(body, nil) })
	}
	if got, want := cost(body), cost(small); got != want {
		t.Errorf("got %v allocations, want %v, as without the dropped members", got, want)
	}
}

func TestOfReturnsTheEssenceOfBuild(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a typical object": `{"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "labels": {"a": "b"}, "annotations": {"note": "keep", "kopf.zalando.org/x": "1"}}, "spec": {"a": [1, null]}, "status": {"phase": "Ready", "other": 1}}`,
		"no metadata":      `{"spec": {}, "data": {"k": "v"}}`,
		"only a status":    `{"status": {"phase": "Ready"}}`,
	} {
		b, err := object.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		fields := []jsonvalue.Path{{"status", "phase"}}
		if diff := cmp.Diff(essence.Build(b.Map(), fields), essence.Of(b, fields)); diff != "" {
			t.Errorf("%s: -Build, +Of:\n%s", name, diff)
		}
	}
}
