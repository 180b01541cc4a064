package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/describe"
)

func handlerOf(text string) describe.Handler {
	return describe.Handler{ID: "create", Family: describe.Change, Where: "x.go:1", Resource: describe.Resource{Text: text}}
}

func TestKnownDefinitionsHaveSeveralNames(t *testing.T) {
	crds, err := Decode([]byte(`{kind: CustomResourceDefinition, spec: {group: kopf.dev, scope: Cluster, names: {plural: kopfexamples, singular: kopfexample, kind: KopfExample, shortNames: [kex]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kopfexamples", "kopfexample", "KopfExample", "kex"} {
		o := Options{Name: "x"}
		if err := o.complete("x"); err != nil {
			t.Fatal(err)
		}
		m := NewModel(o, &describe.Operator{Handlers: []describe.Handler{handlerOf(name)}}, nil, crds...)
		if access := string(m.Access()); !strings.Contains(access, `resources: ["kopfexamples"]`) || len(m.Problems)+len(m.Undefined()) > 0 {
			t.Errorf("%s: got %s, %v, %v", name, access, m.Problems, m.Undefined())
		}
	}
}

func TestResourcesWithoutADefinitionAreNamedOnce(t *testing.T) {
	custom := describe.Resource{Text: "example.com/v1/cars", Group: "example.com", Version: "v1", Plural: "cars"}
	pods := describe.Resource{Text: "v1/pods", Version: "v1", Plural: "pods"}
	typed := describe.Resource{Text: "example.com/v1/typed", Group: "example.com", Version: "v1", Plural: "typed"}
	d := &describe.Operator{Types: []describe.Type{{Resource: typed, Name: "Typed"}}}
	for _, r := range []describe.Resource{custom, custom, pods, typed} {
		d.Handlers = append(d.Handlers, describe.Handler{ID: "x", Family: describe.Change, Where: "x.go:1", Resource: r})
	}
	notes := NewModel(Options{Name: "x", Namespace: "x", Memory: "256Mi"}, d, nil).Undefined()
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "example.com/v1/cars has no definition") {
		t.Errorf("got %q", notes)
	}
}

func TestEnvironmentVariablesAreChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), OptionsFile)
	if err := os.WriteFile(path, []byte("env: {WEBHOOK: service}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := ReadOptions(path, "x")
	if err != nil {
		t.Fatal(err)
	}
	m := NewModel(o, &describe.Operator{}, nil)
	if text := string(encodeAll(m.Workload())); !strings.Contains(text, "- name: WEBHOOK\n          value: service\n") {
		t.Errorf("the Deployment has no such variable: %s", text)
	}
	if err := os.WriteFile(path, []byte("env: {A-B: x}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadOptions(path, "x"); err == nil || !strings.Contains(err.Error(), "A-B") {
		t.Errorf("got %v", err)
	}
}
