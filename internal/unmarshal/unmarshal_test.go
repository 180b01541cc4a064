package unmarshal

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
)

type base struct {
	Name  string `json:"name,omitempty"`
	Size  int64  `json:"size"`
	Other string
}

// custom has everything that users put into their types and both decoders know.
type custom struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	base
	*pointed
	Hidden  string                       `json:"-"`
	Small   int8                         `json:"small"`
	Count   uint16                       `json:"count"`
	Part    float32                      `json:"part"`
	Whole   float64                      `json:"whole"`
	On      *bool                        `json:"on,omitzero"`
	Bytes   []byte                       `json:"bytes"`
	Words   []string                     `json:"words"`
	Nested  map[string][]*custom         `json:"nested"`
	Links   **custom                     `json:"links"`
	At      metav1.Time                  `json:"at"`
	Exact   *metav1.MicroTime            `json:"exact"`
	Stamp   time.Time                    `json:"stamp"`
	Every   metav1.Duration              `json:"every"`
	Limit   resource.Quantity            `json:"limit"`
	Limits  map[string]resource.Quantity `json:"limits"`
	Port    intstr.IntOrString           `json:"port"`
	Raw     runtime.RawExtension         `json:"raw"`
	Message json.RawMessage              `json:"message"`
}

type pointed struct {
	Far string `json:"far"`
}

type (
	withAny    struct{ V any }
	withMap    struct{ V map[string]any }
	withString struct {
		V int `json:"v,string"`
	}
	withArray    struct{ V [2]int }
	withKeys     struct{ V map[int]string }
	withNumber   struct{ V json.Number }
	withDuration struct{ V time.Duration }
	withOption   struct {
		V string `json:"v,case:ignore"`
	}
	withFormat struct {
		V []byte `json:"v,format:hex"`
	}
	withInline struct {
		V base `json:",inline"`
	}
	withEmbed struct {
		V base `json:",embed"`
	}
	withQuotes struct {
		V string `json:"'v'"`
	}
)

var targets = []any{
	custom{}, corev1.Pod{}, corev1.Secret{}, corev1.Service{}, metav1.PartialObjectMetadata{}, unstructured.Unstructured{}, withAny{}, withMap{}, withString{}, withArray{},
	withKeys{}, withNumber{}, withDuration{}, withOption{}, withFormat{}, withInline{}, withEmbed{}, withQuotes{}, map[string]string{}, []base{}, 0, "",
}

var texts = []string{
	``, ` `, `{`, `null`, `1`, `"x"`, `[]`, `{}`, `{}{}`, `[{"name":"a","size":1},{"Name":"b","SIZE":2}]`,
	`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","creationTimestamp":"2026-11-11T11:11:11Z","labels":{"a":"b"},"generation":3,
	"managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}]},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"100m","memory":"1Gi"}},
	"livenessProbe":{"httpGet":{"port":80}},"readinessProbe":{"httpGet":{"port":"http"}}}]}}`,
	`{"name":"a","size":9223372036854775807,"Other":"o","other":"p","far":"f","Hidden":"h","-":"d","kept":1,"small":127,"count":65535,"part":1.5,"whole":1e300,"on":true,
	"bytes":"aGVsbG8=","words":["a",null,"b"],"nested":{"x":[{"name":"y"},null]},"links":{"name":"z"},"at":"2026-11-11T11:11:11Z","exact":"2026-11-11T11:11:11.123456Z",
	"stamp":"2026-11-11T11:11:11.123Z","every":"5m","limit":"1.5Gi","limits":{"cpu":1},"port":"http","raw":{"a":1},"message":[1, 2]}`,
	`{"name":null,"size":null,"on":null,"bytes":null,"words":null,"nested":null,"links":null,"at":null,"exact":null,"stamp":null,"every":null,"limit":null,"port":null,"raw":null,"message":null,"metadata":null}`,
	`{"size":9223372036854775808}`, `{"size":1.0}`, `{"size":1e2}`, `{"size":"1"}`, `{"size":-0}`, `{"small":128}`, `{"count":-1}`, `{"part":1e39}`, `{"whole":1e400}`, `{"whole":"NaN"}`,
	`{"name":1,"size":2}`, `{"size":true,"name":"kept"}`, `{"words":"a","name":"kept"}`, `{"words":{},"name":"kept"}`, `{"nested":[],"name":"kept"}`, `{"on":"true"}`,
	`{"bytes":"aGVsbG8"}`, `{"bytes":"aGVs\nbG8="}`, `{"bytes":[1,2]}`, `{"bytes":"_-8="}`, `{"at":1}`, `{"at":""}`, `{"stamp":"2026-11-11"}`, `{"stamp":"2026-11-11T1:11:11Z"}`, `{"every":5}`, `{"limit":""}`, `{"limit":"1e5"}`,
	`{"name":"a","name":"b"}`, `{"words":["a","b"],"words":["c"]}`, `{"nested":{"a":[]},"nested":{"b":[]}}`, `{"metadata":{"name":"a"},"metadata":{"uid":"b"}}`, `{"links":{"name":"a"},"links":{"size":2}}`,
	"{\"name\":\"\xff\"}", `{"name":"\ud800"}`, `{"name":"\ud83d\ude00 \u00e9 \/"}`, "{\"name\":\"a\tb\"}", "{\"name\":\"a\x00b\"}", "{\"na\xffme\":1}",
	`{"V":{"a":1,"b":1.0,"c":[1,2.5,9223372036854775808]}}`, `{"V":1}`, `{"V":[1,2,3]}`, `{"V":[1]}`, `{"V":{"1":"a"}}`, `{"V":"5"}`, `{"v":"5"}`, `{"v":5}`, `{"v":"aa"}`, `{"V":{"name":"a"},"name":"b"}`, `{"'v'":"a","v":"b"}`,
	`{"data":{"a":"aGVsbG8="},"stringData":{"a":"b"},"type":"Opaque","immutable":true}`, `{"a":"b","c":null}`, `{"name":"a"} x`, `{"name":"a",}`, `{name:"a"}`, `{"unknown":{"deep":[1,{"x":null}]},"name":"a"}`,
}

// compare decodes a text into new values with both decoders.
func compare(t *testing.T, text []byte, target any) {
	t.Helper()
	want, got := reflect.New(reflect.TypeOf(target)), reflect.New(reflect.TypeOf(target))
	wantErr := kjson.UnmarshalCaseSensitivePreserveInts(text, want.Interface())
	gotErr := Into(text, got.Interface())
	if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
		t.Errorf("%T from %.300q: the error is %v, want %v", target, text, gotErr, wantErr)
	}
	if !reflect.DeepEqual(want.Interface(), got.Interface()) {
		t.Errorf("%T from %.300q:\n got %+v\nwant %+v", target, text, got.Elem().Interface(), want.Elem().Interface())
	}
}

func TestBothDecodersAgree(t *testing.T) {
	for _, text := range texts {
		for _, target := range targets {
			compare(t, []byte(text), target)
		}
	}
}

func FuzzBothDecodersAgree(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, target := range targets {
			compare(t, text, target)
		}
	})
}

func TestPlainTypes(t *testing.T) {
	want := map[reflect.Type]bool{}
	for _, yes := range []any{custom{}, corev1.Pod{}, corev1.Secret{}, corev1.Service{}, metav1.PartialObjectMetadata{}, map[string]string{}, []base{}, 0, ""} {
		want[reflect.TypeOf(yes)] = true
	}
	for _, target := range targets {
		if of := reflect.TypeOf(target); of != reflect.TypeFor[unstructured.Unstructured]() && isPlain(of) != want[of] {
			t.Errorf("%v: plain is %v", of, isPlain(of))
		}
	}
}

func TestValuesThatAreNotZeroAreKept(t *testing.T) {
	got := base{Name: "kept", Size: math.MaxInt64}
	if err := Into([]byte(`{"size":"x"}`), &got); err == nil || got.Name != "kept" {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := Into([]byte(`{"size":1}`), &got); err != nil || got != (base{Name: "kept", Size: 1}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func BenchmarkInto(b *testing.B) {
	pod := []byte(texts[10])
	for b.Loop() {
		if err := Into(pod, new(corev1.Pod)); err != nil {
			b.Fatal(err)
		}
	}
}
