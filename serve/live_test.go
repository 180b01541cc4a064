package serve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/internal/children"
	requests "gopf.dev/gopf/internal/handler"
	bodies "gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

var configMaps = kind.Info{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}

// livingOf returns the children of an object of the uid "u" in the namespace.
func livingOf(namespace string, of *requests.Children) *living {
	of.Operator = "op"
	owner := &unstructured.Unstructured{Object: map[string]any{"kind": "Thing", "metadata": map[string]any{"name": "a", "uid": "u"}}}
	owner.SetNamespace(namespace)
	return &living{of: of, owner: owner, all: map[string]map[string]any{}}
}

// configMap returns a list item with metadata, and with so many bytes of data.
func configMap(t *testing.T, namespace, name, metadata string, bytes int) *bodies.Body {
	t.Helper()
	body, err := bodies.Parse(fmt.Appendf(nil, `{"metadata": {"name": %q, "namespace": %q, "uid": "c", %s}, "data": {"a": %q}}`, name, namespace, metadata, strings.Repeat("x", bytes)))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

const (
	label      = `"labels": {"gopf.dev/children": "op"}, `
	controlled = label + `"ownerReferences": [{"uid": "u", "controller": true}]`
)

// A tenant can create objects that refer to any object of its namespace.
func TestAHookGetsOnlyChildrenOfTheObject(t *testing.T) {
	l := livingOf("ns", &requests.Children{})
	for name, metadata := range map[string]string{
		"own":           controlled,
		"noted":         label + `"annotations": {"gopf.dev/owner": "example.com/v1|Thing|ns|a|u"}`,
		"no-label":      `"ownerReferences": [{"uid": "u", "controller": true}]`,
		"another-label": `"labels": {"gopf.dev/children": "other"}, "ownerReferences": [{"uid": "u", "controller": true}]`,
		"no-controller": label + `"ownerReferences": [{"uid": "u"}]`,
		"two-owners":    label + `"ownerReferences": [{"uid": "u"}, {"uid": "v", "controller": true}]`,
		"another-owner": label + `"ownerReferences": [{"uid": "v", "controller": true}], "annotations": {"gopf.dev/owner": "example.com/v1|Thing|ns|a|u"}`,
		"no-owner":      label + `"ownerReferences": []`,
	} {
		if err := l.add(configMaps, configMap(t, "ns", name, metadata, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if got := slices.Sorted(maps.Keys(l.all["ConfigMap.v1"])); !slices.Equal(got, []string{"noted", "own"}) {
		t.Errorf("got %v", got)
	}
	if own := fmt.Sprintf("%s", l.all["ConfigMap.v1"]["own"]); !strings.HasPrefix(own, `{"apiVersion":"v1","kind":"ConfigMap"`) {
		t.Errorf("got %s", own)
	}
}

// Any tenant can create objects that refer to a cluster-scoped object.
func TestAHookOfAClusterScopedObjectGetsOnlyDeclaredChildren(t *testing.T) {
	l := livingOf("", &requests.Children{Listed: func(k children.Key) bool {
		return k == children.Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "own"}
	}})
	for _, namespace := range []string{"ns", "tenant"} {
		for _, name := range []string{"own", "forged"} {
			if err := l.add(configMaps, configMap(t, namespace, name, controlled, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := slices.Collect(maps.Keys(l.all["ConfigMap.v1"])); !slices.Equal(got, []string{"ns/own"}) {
		t.Errorf("got %v", got)
	}
}

func TestTheSizeOfLiveChildrenIsLimited(t *testing.T) {
	reserved := 0
	l := livingOf("ns", &requests.Children{Reserve: func(bytes int) error { reserved += bytes; return nil }})
	if err := l.add(configMaps, configMap(t, "ns", "small", controlled, 10<<10)); err != nil || reserved > 0 {
		t.Errorf("a small child: %v, with %d bytes", err, reserved)
	}
	if err := l.add(configMaps, configMap(t, "ns", "large", controlled, 20<<10)); !errors.Is(err, errNeedsMemory) {
		t.Errorf("the call does not wait for memory: %v", err)
	}
	if err := l.reserve(firstLive); err != nil {
		t.Fatal(err)
	}
	l.all, l.size = map[string]map[string]any{}, 0
	var err error
	for i := 0; i < 20 && err == nil; i++ {
		if err = l.add(configMaps, configMap(t, "ns", fmt.Sprint("large-", i), controlled, 1<<20)); reserved < 2*min(i+1, 7)<<20 {
			t.Fatalf("%d MiB of children have %d bytes of memory", i+1, reserved)
		}
	}
	if n := len(l.all["ConfigMap.v1"]); n != 7 || err == nil || !strings.Contains(err.Error(), "the live children of Thing ns/a have more than 8 MiB of JSON; declare fewer") {
		t.Errorf("got %d children and the error %v", n, err)
	}
	full := errors.New("no memory")
	l.of.Reserve = func(int) error { return full }
	l.size, l.reserved = 0, 1
	if err := l.add(configMaps, configMap(t, "ns", "another", controlled, 1<<20)); !errors.Is(err, full) {
		t.Errorf("got the error %v", err)
	}
}
