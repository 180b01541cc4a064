package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/children"
	requests "gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
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

// server is an API server with objects of one kind. It notes the objects that it sends.
type server struct {
	apiclient.API
	objects []*bodies.Body
	failure error // of reads of single objects
	sent    []string
}

func (s *server) Get(_ context.Context, of kube.Target) (*bodies.Body, error) {
	if s.failure != nil {
		return nil, s.failure
	}
	for _, body := range s.objects {
		if body.Namespace == of.Namespace && body.Name == of.Name {
			s.sent = append(s.sent, body.Namespace+"/"+body.Name)
			return body, nil
		}
	}
	return nil, apierrors.NewNotFound(of.Info.GVR().GroupResource(), of.Name)
}

func (s *server) List(_ context.Context, _ kind.Info, namespace string, _ kube.ListOptions, each func(*bodies.Body) error) (string, error) {
	for _, body := range s.objects {
		if namespace != "" && body.Namespace != namespace {
			continue
		}
		s.sent = append(s.sent, body.Namespace+"/"+body.Name)
		if err := each(body); err != nil {
			return "", err
		}
	}
	return "1", nil
}

// Any tenant can create objects that refer to a cluster-scoped object, or that only have the
// label of the operator. The operator must not even read them.
func TestTheOperatorReadsOnlyDeclaredChildrenOfAClusterScopedObject(t *testing.T) {
	listed := []children.Key{{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "forged"}}
	for _, name := range [][2]string{{"ns", "own"}, {"ns", "gone"}, {"ns", "replaced"}, {"ns", ".."}, {"", "own"}, {"other", "own"}} {
		listed = append(listed, children.Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: name[0], Name: name[1]})
	}
	s := &server{objects: []*bodies.Body{
		configMap(t, "ns", "own", controlled, 1), configMap(t, "ns", "forged", controlled, 1),
		configMap(t, "ns", "replaced", `"labels": {}`, 1), configMap(t, "other", "own", controlled, 1),
		configMap(t, "tenant", "own", controlled, 1), configMap(t, "tenant", "large", label+`"annotations": {}`, 1<<20),
	}}
	l := livingOf("", &requests.Children{Listed: func() []children.Key { return listed }})
	if err := l.read(t.Context(), &apiclient.Objects{API: s}, configMaps); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(l.all["ConfigMap.v1"])); !slices.Equal(got, []string{"ns/own", "other/own"}) {
		t.Errorf("the children are %v", got)
	}
	if want := []string{"ns/own", "ns/replaced", "other/own"}; !slices.Equal(s.sent, want) {
		t.Errorf("the operator has read %v, want %v", s.sent, want)
	}
	s.failure = apierrors.NewInternalError(errors.New("broken"))
	if err := l.read(t.Context(), &apiclient.Objects{API: s}, configMaps); !apierrors.IsInternalError(err) {
		t.Errorf("got the error %v", err)
	}
}

// The inventory may lack a child: another client can change it.
func TestTheOperatorListsTheChildrenOfANamespacedObject(t *testing.T) {
	s := &server{objects: []*bodies.Body{configMap(t, "ns", "own", controlled, 1), configMap(t, "tenant", "own", controlled, 1)}}
	l := livingOf("ns", &requests.Children{Listed: func() []children.Key { return nil }})
	if err := l.read(t.Context(), &apiclient.Objects{API: s}, configMaps); err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(maps.Keys(l.all["ConfigMap.v1"])); !slices.Equal(got, []string{"own"}) || !slices.Equal(s.sent, []string{"ns/own"}) {
		t.Errorf("the children are %v; the operator has read %v", got, s.sent)
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
