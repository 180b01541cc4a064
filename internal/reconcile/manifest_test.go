package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

func fields(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFieldsAreLeftOutOrLeftAlone(t *testing.T) {
	const manifest = `{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "ns", "labels": {"x": "1"}}, "spec": {"a": 1, "b": {"c": 2, "d": 3}}}`
	for name, test := range map[string]struct {
		paths         [][]string
		without, only string
	}{
		"none": {
			nil, manifest,
			`{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "ns"}}`,
		},
		"one": {
			[][]string{{"spec", "b", "c"}},
			`{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "ns", "labels": {"x": "1"}}, "spec": {"a": 1, "b": {"d": 3}}}`,
			`{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "ns"}, "spec": {"b": {"c": 2}}}`,
		},
		"two": {
			[][]string{{"spec", "a"}, {"metadata", "labels"}},
			`{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "ns"}, "spec": {"b": {"c": 2, "d": 3}}}`,
			`{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "ns", "labels": {"x": "1"}}, "spec": {"a": 1}}`,
		},
		"missing": {
			[][]string{{"spec", "x", "y"}, {"status", "a"}},
			manifest,
			`{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "ns"}}`,
		},
	} {
		given := fields(t, manifest)
		if diff := cmp.Diff(fields(t, test.without), without(given, test.paths)); diff != "" {
			t.Errorf("%s: without: -want +got\n%s", name, diff)
		}
		if diff := cmp.Diff(fields(t, test.only), only(given, test.paths)); diff != "" {
			t.Errorf("%s: only: -want +got\n%s", name, diff)
		}
		if diff := cmp.Diff(fields(t, manifest), given); diff != "" {
			t.Errorf("%s: the manifest itself has changed: -want +got\n%s", name, diff)
		}
	}
}

func TestManifestsAreBoundToTheUIDInACopy(t *testing.T) {
	given := fields(t, `{"metadata": {"name": "a"}, "spec": {"b": 1}}`)
	if diff := cmp.Diff(fields(t, `{"metadata": {"name": "a", "uid": "u1"}, "spec": {"b": 1}}`), with(given, "uid", "u1")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff(fields(t, `{"metadata": {"name": "a"}, "spec": {"b": 1}}`), given); diff != "" {
		t.Errorf("the manifest itself has changed: -want +got\n%s", diff)
	}
}

func TestTextsOfSecretsBecomeData(t *testing.T) {
	for given, want := range map[string]string{
		`{}`:                         `{}`,
		`{"data": {"a": "eA=="}}`:    `{"data": {"a": "eA=="}}`,
		`{"stringData": {"a": "x"}}`: `{"data": {"a": "eA=="}}`,
		`{"stringData": {}}`:         `{"data": {}}`,
		`{"stringData": {"a": "x"}, "data": {"a": "eQ==", "b": "eg=="}}`: `{"data": {"a": "eA==", "b": "eg=="}}`,
	} {
		got := fields(t, given)
		plainSecret(got)
		if diff := cmp.Diff(fields(t, want), got); diff != "" {
			t.Errorf("%s: -want +got\n%s", given, diff)
		}
	}
}

func TestChildrenAreMarkedWithTheirOwner(t *testing.T) {
	reference := `"ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Owner", "name": "o", "uid": "u1", "controller": true, "blockOwnerDeletion": true}]`
	annotation := `"annotations": {"gopf.dev/owner": "example.com/v1|Owner|ns|o|u1"}`
	label := `"labels": {"gopf.dev/children": "op"}`
	for name, test := range map[string]struct {
		owner, child string // namespaces
		orphan       bool
		outside      bool
		want         string // the metadata
	}{
		"same namespace":              {"ns", "ns", false, false, label + "," + reference},
		"another namespace":           {"ns", "other", false, true, label + "," + annotation},
		"cluster-scoped child":        {"ns", "", false, true, label + "," + annotation},
		"orphan":                      {"ns", "ns", true, false, label + "," + strings.Replace(annotation, "|u1", "|u1|orphan", 1)},
		"children of a cluster owner": {"", "ns", false, false, label + "," + reference},
	} {
		x := &run{Runner: &Runner{Name: "op"}, Task: Task{Owner: Owner{
			Info:     kind.Info{Group: "example.com", Version: "v1", Kind: "Owner"},
			Identity: object.Identity{Namespace: test.owner, Name: "o", UID: "u1"},
		}}}
		w := &handler.Wanted{Fields: map[string]any{}, Desired: children.Desired{Key: children.Key{Namespace: test.child}, Orphan: test.orphan}}
		if err := x.mark(w); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := fields(t, `{"metadata": {`+test.want+`}}`)
		child(want["metadata"].(map[string]any), "annotations")[childwatch.DigestAnnotation] = children.DigestText(w.Digest)
		if diff := cmp.Diff(want, w.Fields); diff != "" || w.Outside != test.outside {
			t.Errorf("%s: outside %t, want %t; -want +got\n%s", name, w.Outside, test.outside, diff)
		}
	}
}

func TestDependentChildrenAreInALaterWave(t *testing.T) {
	x := &run{Runner: &Runner{Name: "op"}}
	wanted := func(on ...*handler.Wanted) *handler.Wanted {
		w := &handler.Wanted{Fields: map[string]any{}, DependsOn: on}
		if err := x.mark(w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	first := wanted()
	second := wanted(first)
	last := wanted(first, second)
	if first.Wave != 0 || second.Wave != 1 || last.Wave != 2 {
		t.Errorf("got the waves %d, %d and %d, want 0, 1 and 2", first.Wave, second.Wave, last.Wave)
	}
}

func TestDigestsIgnoreInitialFields(t *testing.T) {
	digest := func(replicas, image string) uint32 {
		x := &run{Runner: &Runner{Name: "op"}}
		w := &handler.Wanted{Fields: map[string]any{"spec": map[string]any{"replicas": replicas, "image": image}}, Initial: [][]string{{"spec", "replicas"}}}
		if err := x.mark(w); err != nil {
			t.Fatal(err)
		}
		return w.Digest
	}
	if digest("1", "a") != digest("2", "a") {
		t.Error("a field that is set only at the creation changes the digest")
	}
	if digest("1", "a") == digest("1", "b") {
		t.Error("another field does not change the digest")
	}
}

// Other clients may read the digest without being allowed to read the Secret.
func TestDigestsOfSecretsDoNotAllowGuesses(t *testing.T) {
	const manifest = `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter42"}, "type": "Opaque"}`
	digest := func(key, uid, text string) (stored uint32, w *handler.Wanted) {
		w = &handler.Wanted{Fields: fields(t, text)}
		w.APIVersion, w.Kind = "v1", "Secret"
		x := &run{Runner: &Runner{Name: "op", SecretKey: []byte(key)}, Task: Task{Owner: Owner{Identity: object.Identity{UID: uid}}}}
		if err := x.mark(w); err != nil {
			t.Fatal(err)
		}
		return w.Digest, w
	}
	keyed, w := digest("key", "u1", manifest)
	if got := w.Fields["data"].(map[string]any)["password"]; got != "aHVudGVyNDI=" {
		t.Errorf("the manifest has the value %v", got)
	}
	content := jsonvalue.Clone(w.Fields).(map[string]any)
	delete(content["metadata"].(map[string]any), "annotations")
	if plain, err := children.Digest(content); err != nil || plain == keyed {
		t.Errorf("the digest is that of the plain values, error %v", err)
	}
	for name, other := range map[string][3]string{
		"another key":         {"other", "u1", manifest},
		"another owner":       {"", "u2", manifest},
		"another value":       {"key", "u1", strings.Replace(manifest, "hunter42", "hunter43", 1)},
		"another other field": {"key", "u1", strings.Replace(manifest, "Opaque", "other", 1)},
	} {
		base := keyed
		if other[0] == "" {
			base, _ = digest("", "u1", manifest)
		}
		if got, _ := digest(other[0], other[1], other[2]); got == base {
			t.Errorf("%s: the digest is the same", name)
		}
	}
	if again, _ := digest("key", "u1", manifest); again != keyed {
		t.Error("the digest differs between two calls")
	}
}

func TestChildWithoutManifestIsAnError(t *testing.T) {
	if err := (&run{Runner: &Runner{}}).mark(&handler.Wanted{}); err == nil {
		t.Error("no error")
	}
}

// names is an API server with the objects of these names, which have the uid u2.
type names struct {
	apiclient.API
	all []string
}

func (n names) Get(_ context.Context, t kube.Target) (*object.Body, error) {
	switch {
	case t.Name == "secret":
		return nil, apierrors.NewForbidden(schema.GroupResource{}, t.Name, nil)
	case !slices.Contains(n.all, t.Name):
		return nil, apierrors.NewNotFound(schema.GroupResource{}, t.Name)
	}
	return object.Identity{Namespace: t.Namespace, Name: t.Name, UID: "u2"}.Bare(), nil
}

func TestLiveChildrenBelongToTheirOwner(t *testing.T) {
	info := kind.Info{Group: "example.com", Version: "v1", Plural: "databases", Kind: "Database", Namespaced: true}
	objects := &apiclient.Objects{API: names{all: []string{"db", "again"}}, Known: func() []kind.Info { return []kind.Info{info} }}
	x := &run{Runner: &Runner{Objects: objects}, Task: Task{Owner: Owner{Info: info, Identity: object.Identity{UID: "u1", Namespace: "ns", Name: "db"}}}}
	annotated := func(by object.Identity, orphan bool) *childwatch.Child {
		body, err := object.ParseWhole(fmt.Appendf(nil, `{"metadata":{"name":"c","namespace":"other","uid":"c","annotations":{"gopf.dev/owner":%q}}}`, childwatch.OwnerText(info, by, orphan)))
		if err != nil {
			t.Fatal(err)
		}
		child, err := childwatch.NewStore("op", func() uint64 { return 0 }).Read(kind.Info{Version: "v1", Kind: "ConfigMap"}, body)
		if err != nil {
			t.Fatal(err)
		}
		return child
	}
	other, former := object.Identity{UID: "u2", Namespace: "victim", Name: "db"}, object.Identity{UID: "u0", Namespace: "ns", Name: "db"}
	for name, test := range map[string]struct {
		child *childwatch.Child
		want  children.Live
	}{
		"missing":                                  {nil, children.Live{}},
		"own":                                      {&childwatch.Child{Key: children.Key{Namespace: "ns"}, UID: "c", Owner: "u1", Controller: "u1", Stamp: 7}, children.Live{Exists: true, UID: "c", Stamp: 7, Relation: children.Own}},
		"own by annotation":                        {&childwatch.Child{Owner: "u1"}, children.Live{Exists: true, Relation: children.Own}},
		"controlled by another object":             {&childwatch.Child{Owner: "u2", Controller: "u2"}, children.Live{Exists: true, Relation: children.OfAnother}},
		"annotated by another object":              {annotated(other, false), children.Live{Exists: true, UID: "c", Relation: children.OfAnother}},
		"of another object, until it is deleted":   {annotated(other, true), children.Live{Exists: true, UID: "c", Relation: children.OfAnother}},
		"left by another object":                   {annotated(object.Identity{UID: "u2", Namespace: "victim", Name: "gone"}, true), children.Live{Exists: true, UID: "c", Relation: children.Unowned}},
		"left by an object that was made again":    {annotated(object.Identity{UID: "u3", Namespace: "victim", Name: "again"}, true), children.Live{Exists: true, UID: "c", Relation: children.Unowned}},
		"of an object that the operator can't get": {annotated(object.Identity{UID: "u2", Namespace: "victim", Name: "secret"}, true), children.Live{Exists: true, UID: "c", Relation: children.OfAnother}},
		"annotated by its former self":             {annotated(former, false), children.Live{Exists: true, UID: "c", Relation: children.Unowned}},
		"without owner":                            {&childwatch.Child{Deleting: true}, children.Live{Exists: true, Deleting: true, Relation: children.Unowned}},
	} {
		got, err := x.live(t.Context(), test.child)
		if err != nil {
			t.Fatal(err)
		}
		if test.want.Stamp == 0 {
			got.Stamp = 0 // of no managedFields
		}
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}
