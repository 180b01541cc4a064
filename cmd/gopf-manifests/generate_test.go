package main

import (
	"encoding/json"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-tools/pkg/crd"
	crdmarkers "sigs.k8s.io/controller-tools/pkg/crd/markers"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// plain returns the schemas of spec that controller-gen generates for package v1.
func plain(t *testing.T) map[string]any {
	t.Helper()
	roots, err := loader.LoadRootsWithConfig(&packages.Config{Fset: token.NewFileSet()}, "./testdata/v1")
	if err != nil {
		t.Fatal(err)
	}
	registry := &markers.Registry{}
	if err := crdmarkers.Register(registry); err != nil {
		t.Fatal(err)
	}
	parser := &crd.Parser{Collector: &markers.Collector{Registry: registry}, Checker: &loader.TypeChecker{}}
	crd.AddKnownTypes(parser)
	parser.NeedPackage(roots[0])
	all := map[string]any{}
	for _, kind := range crd.FindKubeKinds(parser, crd.FindMetav1(roots)) {
		parser.NeedCRDFor(schema.GroupKind{Group: "example.com", Kind: kind.Kind}, nil)
		one, ok := parser.CustomResourceDefinitions[kind]
		if !ok {
			t.Fatalf("there is no definition of %s: %v", kind, roots[0].Errors)
		}
		all[kind.Kind] = jsonOf(t, one.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
	}
	return all
}

func jsonOf(t *testing.T, v any) (decoded any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &decoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

func at(v any, path ...string) any {
	for _, key := range path {
		if list, ok := v.([]any); ok {
			v = list[0]
		}
		o, _ := v.(map[string]any)
		v = o[key]
	}
	return v
}

func TestAnonymousStructsGetTheSchemasOfNamedOnes(t *testing.T) {
	want := plain(t)
	r := Request{Dir: ".", Main: "./testdata/main"}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		r.Types = append(r.Types, Type{Package: "gopf.dev/gopf/cmd/gopf-manifests/testdata/anonymous", Name: name, Group: "example.com", Version: "v1", Plural: strings.ToLower(name) + "s"})
	}
	got, err := Generate(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) || len(want) != 30 {
		t.Fatalf("got %d definitions, want %d", len(got), len(want))
	}
	for _, one := range got {
		kind := at(one, "spec", "names", "kind").(string)
		schema := at(one, "spec", "versions", "schema", "openAPIV3Schema", "properties", "spec")
		if !reflect.DeepEqual(schema, want[kind]) {
			a, _ := json.MarshalIndent(schema, "", " ")
			b, _ := json.MarshalIndent(want[kind], "", " ")
			t.Errorf("%s: got\n%s\nwant\n%s", kind, a, b)
		}
	}
}

func generated(t *testing.T, r Request, name string) map[string]any {
	t.Helper()
	r.Dir, r.Main = ".", "./testdata/main"
	r.Types = []Type{{Package: "main", Name: name, Group: "example.com", Version: "v1", Plural: "things"}}
	all, err := Generate(r)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func TestADefinitionFitsTheOperator(t *testing.T) {
	one := generated(t, Request{StateKey: "db"}, "Database")
	version := at(one, "spec", "versions")
	root := at(version, "schema", "openAPIV3Schema")
	status := at(root, "properties", "status")
	for what, ok := range map[string]bool{
		"the plural is that of the declaration": at(one, "metadata", "name") == "things.example.com" && at(one, "spec", "names", "plural") == "things",
		"short names":                           at(one, "spec", "names", "shortNames").([]any)[0] == "db",
		"the status is separate":                at(version, "subresources", "status") != nil,
		"printer columns":                       at(version, "additionalPrinterColumns", "jsonPath") == ".status.state",
		"results of handlers":                   at(status, "x-kubernetes-preserve-unknown-fields") == true,
		"the state of the operator":             at(status, "properties", "db", "x-kubernetes-preserve-unknown-fields") == true,
		"parts of the status":                   at(status, "required") == nil,
		"only the spec is required":             reflect.DeepEqual(at(root, "required"), []any{"spec"}),
		"the version is stored":                 at(version, "storage") == true && at(version, "served") == true,
		"docs":                                  at(root, "properties", "spec", "properties", "size", "description") == "Size in gigabytes.",
		"an accepted change":                    at(one, "metadata", "annotations", "gopf.dev/accepted-breaks") == `{"v1 spec.size":"sizes are numbers now"}`,
		"no status of its own":                  at(one, "status") == nil,
	} {
		if !ok {
			t.Errorf("%s: not in %v", what, one)
		}
	}
}

func TestAStrictStatusHasOnlyItsFields(t *testing.T) {
	one := generated(t, Request{}, "Strict")
	if status := at(one, "spec", "versions", "schema", "openAPIV3Schema", "properties", "status"); at(status, "x-kubernetes-preserve-unknown-fields") != nil || at(one, "spec", "scope") != "Cluster" {
		t.Errorf("got %v", one)
	}
}

func TestDescriptionsCanBeLeftOut(t *testing.T) {
	text, err := json.Marshal(generated(t, Request{NoDocs: true, StateKey: "db"}, "Database"))
	if err != nil || strings.Contains(string(text), "description") || !strings.Contains(string(text), "accepted-breaks") {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestMissingTypesAreReported(t *testing.T) {
	_, err := Generate(Request{Dir: ".", Main: "./testdata/main", Types: []Type{{Package: "main", Name: "None", Group: "example.com", Version: "v1", Plural: "nones"}}})
	if err == nil || !strings.Contains(err.Error(), "the definition of None: there is no such type") {
		t.Errorf("got %v", err)
	}
}
