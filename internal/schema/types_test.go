package schema

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"gopf.dev/gopf/internal/jsonvalue"
)

type thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Common        `json:",inline"`
		*Shared              // without a tag
		Named         Common `json:",inline"` // not embedded, which encoding/json accepts
		Host          string `json:"host,omitempty"`
		Plain         int
		Hidden        int `json:"-"`
		private       int
		Child         *thing                       `json:"child,omitempty"`
		Children      []thing                      `json:"children,omitempty"`
		ByName        map[string]*Common           `json:"byName,omitempty"`
		Labels        map[string]map[string]string `json:"labels"`
		Anything      any                          `json:"anything"`
		Free          map[string]any               `json:"free"`
		Raw           json.RawMessage              `json:"raw"`
		Extension     runtime.RawExtension         `json:"extension"`
		Size          resource.Quantity            `json:"size"`
		Port          intstr.IntOrString           `json:"port"`
		Since         *metav1.Time                 `json:"since"`
		Wait          time.Duration                `json:"wait"`
		Data          []byte                       `json:"data"`
		PointerToText **string                     `json:"text"`
	} `json:"spec"`
	Status Open `json:"status"`
}

type Common struct {
	Zone string `json:"zone"`
}

type Shared struct {
	*Shared        // embeds itself
	Region  string `json:"region"`
}

type Open struct {
	Phase string         `json:"phase"`
	Rest  map[string]any `json:",inline"`
}

func TestPathsInGoTypes(t *testing.T) {
	const exists, unknown, list, plain = "exists", "unknown", "list", "plain value"
	for path, want := range map[string]string{
		"apiVersion": exists, "kind": exists, "metadata": exists, "spec": exists,
		"metadata.name": exists, "metadata.labels.anything": exists, "metadata.nmae": "1", "metadata.creationTimestamp": exists,
		"metadata.ownerReferences": exists, "metadata.ownerReferences.0": list, "metadata.name.x": plain,
		"sepc": "0", "sepc.host": "0", "spec.host": exists, "spec.hosst": "1", "spec.host.x": plain,
		"spec.zone": exists, "spec.region": exists, "spec.Shared": "1", "spec.Common": "1",
		"spec.Plain": exists, "spec.plain": exists, "spec.Hidden": "1", "spec.private": "1",
		"spec.child.spec.host": exists, "spec.child.spec.hosst": "3", "spec.child.spec.child.spec.zone": exists,
		"spec.children": exists, "spec.children.0": list, "spec.children.host": list, "spec.data": exists, "spec.data.x": list,
		"spec.byName.any": exists, "spec.byName.any.zone": exists, "spec.byName.any.zome": "3",
		"spec.labels.a.b": exists, "spec.labels.a.b.c": plain,
		"spec.anything": exists, "spec.anything.x.y": unknown, "spec.free.x": exists, "spec.free.x.y": unknown,
		"spec.raw.x": unknown, "spec.extension.x.y": unknown, "spec.size": exists, "spec.size.x": unknown,
		"spec.port.x": unknown, "spec.since.x": unknown, "spec.wait.x": plain, "spec.text": exists, "spec.text.x": plain,
		"status.phase": exists, "status.phase.x": plain, "status.other.x": unknown,
	} {
		f := InObject(reflect.TypeFor[*thing](), strings.Split(path, "."))
		if got := describe(f); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// describe returns a short form of a finding: the index of the missing key, or a word.
func describe(f Finding) string {
	switch {
	case f.Verdict == Exists:
		return "exists"
	case f.Verdict == Unknown:
		return "unknown"
	case f.Parent != "":
		return f.Parent
	}
	return string('0' + rune(f.At))
}

func TestObjectsWithoutATypeHaveMetadata(t *testing.T) {
	for path, want := range map[string]string{
		"spec.hosst": "unknown", "metadata.labels.x": "exists", "metadata.lables": "1", "kind": "exists",
	} {
		if got := describe(InObject(nil, strings.Split(path, "."))); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestSuggestionsReplaceTheMissingKey(t *testing.T) {
	for path, want := range map[string][2]string{ // the typo and the similar one
		"spec.hosst":           {"spec.host", "spec.host"},
		"sepc.host":            {"spec.host", "spec.host"},
		"spec.child.spec.hots": {"spec.child.spec.host", "spec.child.spec.host"},
		"spec.childs":          {"", "spec.child"},
		"spec.unrelated":       {"", ""},
		"spec.host":            {"", ""},
		"spec.children.0":      {"", ""},
	} {
		keys := jsonvalue.SplitPath(path)
		f := InObject(reflect.TypeFor[*thing](), keys)
		typo, _ := f.Typo(keys)
		meant, _ := f.Meant(keys)
		if typo.String() != want[0] || meant.String() != want[1] {
			t.Errorf("%s: got %q and %q, want %q", path, typo, meant, want)
		}
	}
}
