package main

import (
	"strings"
	"testing"
)

const samples = "gopf.dev/gopf/cmd/gopf-manifests/testdata/"

func versioned(pkg, name, version string) Type {
	return Type{Package: samples + pkg, Name: name, Group: "example.com", Version: version, Plural: strings.ToLower(name) + "s"}
}

func TestTheNewestVersionIsStored(t *testing.T) {
	all, err := Generate(Request{Dir: ".", Main: "./testdata/main", Types: []Type{
		versioned("v1", "Plain", "v1"), versioned("v2", "Plain", "v2"), versioned("v1beta1", "Plain", "v1beta1"),
	}})
	if err != nil || len(all) != 1 {
		t.Fatalf("got %d definitions, %v", len(all), err)
	}
	var got []string
	for _, v := range at(all[0], "spec").(map[string]any)["versions"].([]any) {
		one := at(v, "name").(string)
		if at(v, "storage") == true {
			one += " stored"
		}
		got = append(got, one)
	}
	if strings.Join(got, ", ") != "v1beta1, v1, v2 stored" {
		t.Errorf("got %v", got)
	}
	if accepted := at(all[0], "metadata", "annotations", acceptedAnnotation); accepted != `{"v1beta1 spec.name":"the former name","v2 spec.names":"the new name"}` {
		t.Errorf("the accepted changes are %v", accepted)
	}
}

func TestAMarkerChoosesTheStoredVersion(t *testing.T) {
	newer := versioned("v1", "Plain", "v3")
	newer.Plural = "markeds"
	all, err := Generate(Request{Dir: ".", Main: "./testdata/main", Types: []Type{newer, versioned("v2", "Marked", "v2")}})
	if err != nil || len(all) != 1 {
		t.Fatalf("got %d definitions, %v", len(all), err)
	}
	first := at(all[0], "spec", "versions")
	if at(first, "name") != "v2" || at(first, "storage") != true || at(all[0], "spec", "names", "kind") != "Marked" {
		t.Errorf("got %v", all[0])
	}
	twice := []Type{versioned("v1", "Plain", "v1"), versioned("v2", "Plain", "v1")}
	if _, err := Generate(Request{Dir: ".", Main: "./testdata/main", Types: twice}); err == nil || !strings.Contains(err.Error(), "two types are declared for the version v1") {
		t.Errorf("got %v", err)
	}
}
