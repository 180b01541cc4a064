package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// sample has specs of one type, as YAML.
type sample struct {
	valid string
	want  string            // parts of the stored spec, such as defaults; empty means no check
	wrong map[string]string // invalid specs, with the path or the message of the API server
}

var sampleSpecs = map[string]sample{
	"Plain":      {"{who: a, count: 1}", "", map[string]string{"{count: 1}": "spec.who", "{who: a, count: b}": "spec.count"}},
	"Bounded":    {"{box: {mode: a}}", "{box: {mode: a, size: 10}}", map[string]string{"{box: {mode: c}}": "spec.box.mode", "{box: {mode: a, size: 0}}": "spec.box.size", "{box: {mode: a, name: X}}": "spec.box.name"}},
	"Deep":       {"{one: {two: {three: {last: x}}}}", "", map[string]string{"{one: {two: {three: {}}}}": "spec.one.two.three.last"}},
	"Listed":     {"{items: [{key: a, sub: [{value: 1}]}]}", "", map[string]string{"{items: [{key: a}, {key: b}, {key: c}, {key: d}]}": "spec.items", "{items: [{}]}": "spec.items[0].key"}},
	"Mapped":     {"{rooms: {a: {doors: 1}}, texts: {b: c}}", "", map[string]string{"{rooms: {a: {}}}": "spec.rooms.a.doors", "{texts: {b: 1}}": "spec.texts.b"}},
	"Pointed":    {"{maybe: {deep: {value: a}}}", "", map[string]string{"{maybe: {deep: {}}}": "spec.maybe.deep.value"}},
	"Ruled":      {"{range: {least: 1, most: 2}}", "", map[string]string{"{range: {least: 3, most: 2}}": "least is more than most"}},
	"Known":      {"{port: http, size: 1Gi, after: 5s, at: '2026-01-01T00:00:00Z'}", "", map[string]string{"{port: [1]}": "spec.port", "{size: much}": "spec.size", "{at: soon}": "spec.at"}},
	"Embedding":  {"{most: 5, own: {value: a}}", "", map[string]string{"{most: 101, own: {value: a}}": "spec.most", "{own: {}}": "spec.own.value"}},
	"Loose":      {"{any: {x: [1]}, part: {other: 1}}", "{any: {x: [1]}, part: {other: 1}}", map[string]string{"{part: {known: 1}}": "spec.part.known"}},
	"Shown":      {"{color: red}", "", map[string]string{"{color: ''}": "spec.color"}},
	"Scaled":     {"{replicas: 2}", "", map[string]string{"{replicas: -1}": "spec.replicas"}},
	"Keyed":      {"{ports: [{name: a, port: 1}, {name: a, port: 2}], tags: [x, z]}", "", map[string]string{"{ports: [{name: a, port: 1}, {name: a, port: 1}]}": "Duplicate value", "{tags: [x, x]}": "Duplicate value"}},
	"Defaulted":  {"{}", "{color: blue, 'on': true, list: [a, b], part: {size: 3, depth: 7}}", map[string]string{"{color: 1}": "spec.color"}},
	"Enumerated": {"{mode: Fast, modes: [Slow], level: 2}", "", map[string]string{"{mode: Medium}": "spec.mode", "{mode: Fast, modes: [Medium]}": "spec.modes[0]", "{mode: Fast, level: 4}": "spec.level"}},
	"Numbered":   {"{percent: 5, limit: 10%}", "", map[string]string{"{percent: 0}": "spec.percent", "{percent: 7}": "spec.percent", "{percent: 105}": "spec.percent", "{percent: 5, limit: many}": "spec.limit"}},
	"Measured":   {"{memory: 1Gi, limits: {cpu: 1}}", "", map[string]string{"{memory: large}": "spec.memory", "{memory: 1, limits: {cpu: x}}": "spec.limits.cpu"}},
	"Worded":     {"{code: abc, mail: a@b.com}", "", map[string]string{"{code: a}": "spec.code", "{code: abcde}": "spec.code", "{code: abc, mail: nobody}": "spec.mail", "{code: abc, id: x}": "spec.id"}},
	"Nullable":   {"{text: null}", "{text: null}", map[string]string{"{}": "spec.text", "{text: 1}": "spec.text"}},
	"Free":       {"{template: {apiVersion: v1, kind: Pod, x: 1}, values: [1, a], rest: {a: b}}", "{template: {apiVersion: v1, kind: Pod, x: 1}}", map[string]string{"{template: {x: 1}}": "spec.template"}},
	"Chosen":     {"{hard: a}", "", map[string]string{"{soft: a}": "spec.hard"}},
	"Counted":    {"{names: [a], labels: {a: b}}", "", map[string]string{"{names: []}": "spec.names", "{names: [a, b, c]}": "spec.names", "{names: [abcd]}": "spec.names[0]", "{names: [a], labels: {}}": "spec.labels"}},
	"Boxed":      {"{text: {value: a}, number: {value: 1}, many: [{value: Fast}], pairs: {a: {key: b, then: 1}}}", "", map[string]string{"{text: {value: 1}}": "spec.text.value", "{text: {value: a, note: abcdef}}": "spec.text.note", "{text: {value: a}, number: {value: a}}": "spec.number.value", "{text: {value: a}, pairs: {a: {key: '', then: 1}}}": "the key is empty"}},
	"Stacked":    {"{box: {value: {value: 1}}, from: 1, size: {minutes: 2}}", "", map[string]string{"{box: {value: {value: a}}}": "spec.box.value.value", "{box: {value: {value: 1}}, size: {minutes: 0}}": "spec.size.minutes"}},
	"Typed":      {"{name: a-b, ports: [80], byName: {a: 1}}", "", map[string]string{"{name: A}": "spec.name", "{name: a, ports: [0]}": "spec.ports[0]", "{name: a, byName: {a: 70000}}": "spec.byName.a"}},
	"Composed":   {"{policy: Never}", "{policy: Never, weight: 9}", map[string]string{"{policy: Sometimes}": "spec.policy", "{}": "spec.policy"}},
	"Guarded":    {"{numbers: [1, 2], range: {min: 1, max: 2}}", "", map[string]string{"{numbers: [0], range: {min: 1, max: 2}}": "all numbers must be positive", "{range: {min: 3, max: 2}}": "min is too large"}},
	"Nested":     {"{matrix: [[1]], groups: {a: [b]}, rooms: [{a: {doors: 1}}]}", "", map[string]string{"{matrix: [1]}": "spec.matrix[0]", "{groups: {a: b}}": "spec.groups.a", "{rooms: [{a: {}}]}": "spec.rooms[0].a.doors"}},
	"Exclusive":  {"{source: {file: a}}", "", map[string]string{"{source: {}}": "exactly one of", "{source: {file: a, url: b}}": "exactly one of"}},
	"Timed":      {"{at: '2026-01-01T00:00:00Z', exactly: '2026-01-01T00:00:00.000001Z', after: 1h, data: YQ==}", "", map[string]string{"{at: noon}": "spec.at", "{at: '2026-01-01T00:00:00Z', data: '?'}": "spec.data"}},
}

// sampleDefinitions returns the definitions of all samples, in a group of their own.
func sampleDefinitions(t *testing.T, group string) []map[string]any {
	t.Helper()
	r := Request{Dir: ".", Main: "./testdata/main"}
	for _, kind := range slices.Sorted(maps.Keys(sampleSpecs)) {
		r.Types = append(r.Types, Type{Package: samples + "anonymous", Name: kind, Group: group, Version: "v1", Plural: strings.ToLower(kind) + "s"})
	}
	all, err := Generate(r)
	if err != nil || len(all) != 30 {
		t.Fatalf("got %d definitions: %v", len(all), err)
	}
	return all
}

// The API server accepts the definitions of all samples, and enforces them.
func TestClusterEnforcesTheDefinitionsOfTheSamples(t *testing.T) {
	path := os.Getenv("GOPF_TEST_KUBECONFIG")
	if path == "" {
		t.Skip("GOPF_TEST_KUBECONFIG is not set")
	}
	rest, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	rest.QPS, rest.Burst = 1000, 1000
	client, err := dynamic.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	const group = "samples.gopf.dev"
	ctx := t.Context()
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, one := range sampleDefinitions(t, group) {
		object := &unstructured.Unstructured{Object: one}
		if _, err := crds.Create(ctx, object, metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
			t.Fatalf("%s: %v", object.GetName(), err)
		}
		t.Cleanup(func() {
			_ = crds.Delete(context.WithoutCancel(ctx), object.GetName(), metav1.DeleteOptions{}) // the control plane is temporary
		})
	}
	for kind, s := range sampleSpecs {
		var objects dynamic.ResourceInterface = client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: strings.ToLower(kind) + "s"})
		if kind != "Timed" { // cluster-scoped
			objects = client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: strings.ToLower(kind) + "s"}).Namespace("default")
		}
		create := func(spec string) (*unstructured.Unstructured, error) {
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"name": "sample"}, "spec": specOf(t, spec),
			}}
			return objects.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: "Ignore"})
		}
		eventually(t, kind+" is served", func() error {
			created, err := create(s.valid)
			if err != nil {
				return err
			}
			if got, want := created.Object["spec"], specOf(t, s.want); s.want != "" && !contains(got, want) {
				t.Errorf("%s: got %v, want %v", kind, got, want)
			}
			return nil
		})
		for spec, want := range s.wrong {
			if _, err := create(spec); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: got %v, want a rejection because of %s", kind, spec, errors.Join(err), want)
			}
		}
		if len(s.wrong) == 0 {
			t.Errorf("%s has no invalid spec", kind)
		}
	}
}

func specOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// contains reports whether got has all fields of want. Numbers are compared as JSON.
func contains(got any, want map[string]any) bool {
	o, _ := got.(map[string]any)
	for key, value := range want {
		if inner, ok := value.(map[string]any); ok {
			if !contains(o[key], inner) {
				return false
			}
			continue
		}
		if number, ok := o[key].(int64); ok {
			o[key] = float64(number)
		}
		present, ok := o[key]
		if list, isList := present.([]any); isList {
			present = numbers(list)
		}
		if !ok || !reflect.DeepEqual(present, value) {
			return false
		}
	}
	return true
}

func numbers(list []any) []any {
	for i := range list {
		if number, ok := list[i].(int64); ok {
			list[i] = float64(number)
		}
	}
	return list
}
