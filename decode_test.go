package gopf

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
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

func TestDecodeReturnsANewCopyEachTime(t *testing.T) {
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

func TestDecodeErrorsNameTheField(t *testing.T) {
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

func TestDecodeOldSkipsFieldsThatDoNotFit(t *testing.T) {
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

type pods struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Containers []corev1.Container  `json:"containers"`
		Limits     corev1.ResourceList `json:"limits,omitempty"`
	} `json:"spec"`
}

// many returns a list of so many equal values.
func many(value string, n int) string { return "[" + strings.Repeat(value+",", n-1) + value + "]" }

// Clients can forge the last handled configuration, and the memory for a turn is that of the object.
func TestOldValuesMustNotTakeFarMoreMemoryThanTheirJSON(t *testing.T) {
	filled := `{"name":"a","image":"b","env":[{"name":"c","value":"d"}]}`
	for name, c := range map[string]struct {
		now, old string
		want     int
	}{
		"nulls":                            {many(filled, 1), many("null", 7000), 0},
		"few nulls":                        {many(filled, 1), many("null", 50), 50},
		"containers":                       {many(filled, 1), many(filled, 2000), 2000},
		"as many nulls as in the object":   {many("null", 7000), many("null", 7000), 7000},
		"a list of small objects, as many": {many(`{}`, 7000), many(`{}`, 7000), 7000},
	} {
		b := bodyOf(t, `{"metadata":{"name":"x"},"spec":{"containers":`+c.now+`}}`)
		essence := bodyOf(t, `{"spec":{"containers":`+c.old+`}}`).Map()
		delete(essence, "metadata")
		if old := decodeOld[*pods](essence, b); len(old.Spec.Containers) != c.want || old.Name != "x" {
			t.Errorf("%s: got %d containers of %q, want %d", name, len(old.Spec.Containers), old.Name, c.want)
		}
	}
}

func TestValuesThatTakeFarTooMuchTimeOrMemoryDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want bool
	}{
		"usual values":  {`{"containers":` + many(`{"name":"a","image":"b"}`, 2000) + `,"limits":{"cpu":"100m"}}`, true},
		"a quantity":    {`{"containers":[],"limits":{"cpu":"123456789012345678901234e10000000"}}`, false},
		"many nulls":    {`{"containers":` + many("null", 7000) + `,"limits":null}`, false},
		"too many":      {`{"containers":` + many(`{}`, 50_000) + `,"limits":null}`, false},
		"a few nulls":   {`{"containers":[null,null],"limits":{}}`, true},
		"other numbers": {`{"containers":[],"limits":{"cpu":"1e3","memory":1.5}}`, true},
	} {
		s, err := newSubject[Unstructured](&handler.Request{Body: bodyOf(t, `{"spec":`+c.spec+`}`), Patch: &patch.Patch{}})
		if err != nil {
			t.Fatal(err)
		}
		_, containers := ValueAt[[]corev1.Container](s, "spec.containers")
		_, limits := ValueAt[corev1.ResourceList](s, "spec.limits")
		if got := containers && limits; got != c.want {
			t.Errorf("%s: the containers fit: %v, the limits fit: %v", name, containers, limits)
		}
	}
}

// Each of up to 100 errors of a strict decoder has the path of its field.
func TestValuesWithLongPathsDoNotFit(t *testing.T) {
	type value struct{ A int }
	for _, c := range []struct {
		key  int
		want bool
	}{{1000, true}, {10_000, false}} {
		text := `{"spec":{"` + strings.Repeat("k", c.key) + `":{"A":1}}}`
		s, err := newSubject[Unstructured](&handler.Request{Body: bodyOf(t, text), Patch: &patch.Patch{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ValueAt[map[string]value](s, "spec"); ok != c.want {
			t.Errorf("a key of %d bytes: fits: %v", c.key, ok)
		}
	}
}

func TestFieldReadsUntypedObjectsByPath(t *testing.T) {
	req := &handler.Request{
		Body:  bodyOf(t, `{"spec":{"size":"1Gi","count":3,"ratio":0.5,"tags":["a","b"],"none":null}}`),
		Patch: &patch.Patch{},
	}
	s, err := newSubject[Unstructured](req)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := ValueAt[string](s, "spec.size"); v != "1Gi" || !ok {
		t.Errorf("size: %q %v", v, ok)
	}
	if v, ok := ValueAt[int](s, "/spec/count"); v != 3 || !ok {
		t.Errorf("count: %d %v", v, ok)
	}
	if v, ok := ValueAt[[]string](s, "spec.tags"); len(v) != 2 || !ok {
		t.Errorf("tags: %v %v", v, ok)
	}
	if v, ok := ValueAt[string](s, "spec.count"); ok {
		t.Errorf("a number is found as the text %q", v)
	}
	if v, ok := ValueAt[string](s, "spec.absent"); ok {
		t.Errorf("something absent is found as %q", v)
	}
}

// Integers beyond 2^53, and beyond int64, survive handlers of every type.
func TestDecodedObjectsKeepTheirNumbers(t *testing.T) {
	type counter struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Nanos int64          `json:"nanos"`
			Total uint64         `json:"total"`
			Free  map[string]any `json:"free"`
			List  []any          `json:"list"`
		} `json:"spec"`
	}
	const spec = `{"nanos":1763217600123456789,"total":18446744073709551615,"free":{"a":9007199254740993,"b":18446744073709552000},` +
		`"list":[9007199254740993],"unknown":123456789012345678901234567890}`
	b := bodyOf(t, `{"metadata":{"name":"x"},"spec":`+spec+`}`)
	same := func(where string, v any) {
		t.Helper()
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var want, got bytes.Buffer
		for buf, text := range map[*bytes.Buffer]string{&want: spec, &got: string(raw)} {
			decoder := json.NewDecoder(strings.NewReader(text))
			decoder.UseNumber()
			var fields any
			if err := decoder.Decode(&fields); err != nil {
				t.Fatal(err)
			}
			if err := json.NewEncoder(buf).Encode(fields); err != nil {
				t.Fatal(err)
			}
		}
		if want.String() != got.String() {
			t.Errorf("%s: got %s", where, raw)
		}
	}
	u, err := decode[Unstructured](b)
	if err != nil {
		t.Fatal(err)
	}
	same("untyped", u.DeepCopy().Object["spec"])
	same("untyped old", decodeOld[Unstructured](map[string]any{"spec": b.Map()["spec"]}, b).Object["spec"])

	fields, _ := b.Fields()
	editOnce(fields, func(c *counter) { c.Labels["x"] = "y" })
	same("edited elsewhere", fields["spec"])
	editOnce(fields, func(c *counter) { c.Spec.List = append([]any{}, c.Spec.List...) })
	same("edited without effect", fields["spec"])
	editOnce(fields, func(u Unstructured) { u.SetLabels(nil) })
	same("edited untyped", fields["spec"])

	old := decodeOld[*counter](map[string]any{"spec": b.Map()["spec"]}, b)
	if old.Spec.Nanos != 1763217600123456789 || old.Spec.Total != 18446744073709551615 || old.Spec.Free["a"] != int64(9007199254740993) {
		t.Errorf("old: %+v", old.Spec)
	}
	var p patch.Patch
	asked := Patch[Unstructured]{p: &p}
	asked.Set("spec", b.Map()["spec"])
	same("set", p.Fields()["spec"])
	asked.Set("spec.total", uint64(18446744073709551615))
	same("set in part", p.Fields()["spec"])

	subject := Subject[Unstructured]{req: &handler.Request{Body: b}}
	if free, ok := ValueAt[map[string]any](&subject, "spec.free"); !ok || free["a"] != int64(9007199254740993) {
		t.Errorf("a field: %v, %v", free, ok)
	}
	if free, ok := ValueAt[map[string]int64](&subject, "spec.free"); ok {
		t.Errorf("a field that does not fit: %v", free)
	}
	if list, ok := ValueAt[[]int64](&subject, "spec.list"); !ok || list[0] != 9007199254740993 {
		t.Errorf("a list: %v, %v", list, ok)
	}
	if !Is(uint64(18446744073709551615)).match(fields["spec"].(map[string]any)["total"], true) {
		t.Error("an integer beyond int64 does not match itself")
	}
}
