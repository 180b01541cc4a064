package gopf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/registry"
)

type claim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size  string `json:"size"`
		Count int    `json:"count,omitempty"`
	} `json:"spec"`
}

func bodyOf(t *testing.T, json string) *object.Body {
	t.Helper()
	b, err := object.Parse([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEachCallGetsAnObjectOfItsOwn(t *testing.T) {
	b := bodyOf(t, `{"metadata":{"name":"x"},"spec":{"size":"1Gi"}}`)
	first, err := decode[Unstructured](b)
	if err != nil {
		t.Fatal(err)
	}
	first.Object["spec"].(map[string]any)["size"] = "changed"
	second, _ := decode[Unstructured](b)
	if got := second.Object["spec"].(map[string]any)["size"]; got != "1Gi" {
		t.Errorf("the second one sees %v", got)
	}
}

func TestAnObjectThatDoesNotFitIsToldByItsField(t *testing.T) {
	_, err := decode[*claim](bodyOf(t, `{"spec":{"size":"1Gi","count":"many"}}`))
	if err == nil || !strings.Contains(err.Error(), "spec.count") {
		t.Errorf("got %v", err)
	}
}

func TestNamesOfFieldsAreCaseSensitive(t *testing.T) {
	c, err := decode[*claim](bodyOf(t, `{"spec":{"Size":"1Gi"}}`))
	if err != nil || c.Spec.Size != "" {
		t.Errorf("got %q, %v", c.Spec.Size, err)
	}
}

func TestThePastIsDecodedAsFarAsItFits(t *testing.T) {
	b := bodyOf(t, `{"metadata":{"name":"x","namespace":"ns","uid":"u"},"spec":{}}`)
	old := decodeOld[*claim](map[string]any{"spec": map[string]any{"size": "1Gi", "count": "many"}}, b)
	if old.Spec.Size != "1Gi" || old.Spec.Count != 0 || old.Name != "x" || old.Namespace != "ns" || old.UID != "u" {
		t.Errorf("got %+v", old)
	}
	if empty := decodeOld[*claim](nil, b); empty == nil || empty.Spec.Size != "" || empty.Name != "x" {
		t.Errorf("on creation: got %+v", empty)
	}
	if empty := decodeOld[Unstructured](nil, b); empty.GetName() != "x" {
		t.Errorf("on creation, untyped: got %+v", empty)
	}
}

func TestTypedEditsKeepWhatTheTypeDoesNotKnow(t *testing.T) {
	fields := bodyOf(t, `{"metadata":{"name":"x","annotations":{"a":"1"}},"spec":{"size":"1Gi","unknown":{"deep":1}},"other":[1]}`).Map()
	editAs(fields, func(c *claim) {
		c.Spec.Size = "2Gi"
		c.Labels["new"] = "label"
		delete(c.Annotations, "a")
	})
	want := map[string]any{
		"metadata": map[string]any{"name": "x", "labels": map[string]any{"new": "label"}},
		"spec":     map[string]any{"size": "2Gi", "unknown": map[string]any{"deep": int64(1)}},
		"other":    []any{int64(1)},
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestFieldsOfUntypedObjectsAreReadByTheirPaths(t *testing.T) {
	req := &registry.Request{
		Body:  bodyOf(t, `{"spec":{"size":"1Gi","count":3,"ratio":0.5,"tags":["a","b"],"none":null}}`),
		Patch: &patch.Patch{},
	}
	s, err := newSubject[Unstructured](req)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := Field[string](s, "spec.size"); v != "1Gi" || !ok {
		t.Errorf("size: %q %v", v, ok)
	}
	if v, ok := Field[int](s, "/spec/count"); v != 3 || !ok {
		t.Errorf("count: %d %v", v, ok)
	}
	if v, ok := Field[[]string](s, "spec.tags"); len(v) != 2 || !ok {
		t.Errorf("tags: %v %v", v, ok)
	}
	if v, ok := Field[string](s, "spec.count"); ok {
		t.Errorf("a number is found as the text %q", v)
	}
	if v, ok := Field[string](s, "spec.absent"); ok {
		t.Errorf("something absent is found as %q", v)
	}
}

func TestPatchesCollectChanges(t *testing.T) {
	collected := &patch.Patch{}
	p := &Patch[*claim]{collected}
	p.Set("spec.size", "2Gi")
	p.Remove("spec.count")
	p.Label("app.kubernetes.io/name", "x")
	p.Unlabel("old")
	p.Annotate("note", "y")
	p.Unannotate("gone")
	p.Status(map[string]any{"phase": "Ready", "nested": map[string]int{"a": 1}})
	p.Status(struct {
		Nested map[string]int `json:"nested"`
	}{map[string]int{"b": 2}})
	want := map[string]any{
		"spec": map[string]any{"size": "2Gi", "count": nil},
		"metadata": map[string]any{
			"labels":      map[string]any{"app.kubernetes.io/name": "x", "old": nil},
			"annotations": map[string]any{"note": "y", "gone": nil},
		},
		"status": map[string]any{"phase": "Ready", "nested": map[string]any{"a": int64(1), "b": int64(2)}},
	}
	if diff := cmp.Diff(want, collected.Fields()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
