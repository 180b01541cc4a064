package gopftest

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
)

// served returns the discovery entry of a plural.
func served(t *testing.T, c *Cluster, plural string) *metav1.APIResource {
	t.Helper()
	_, lists, err := discovery.NewDiscoveryClientForConfigOrDie(c.RESTConfig()).ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		for _, res := range list.APIResources {
			if res.Name == plural {
				return &res
			}
		}
	}
	return nil
}

func TestKindsAreDerivedFromNames(t *testing.T) {
	tests := map[string]struct {
		kind, singular string
		namespaced     bool
		status         bool
	}{
		"v1/pods":                          {"Pod", "pod", true, true},
		"pods":                             {"Pod", "pod", true, true},
		"v1/nodes":                         {"Node", "node", false, true},
		"v1/configmaps":                    {"ConfigMap", "configmap", true, false},
		"networking.k8s.io/v1/ingresses":   {"Ingress", "ingress", true, true},
		"kopf.dev/v1/kopfexamples":         {"KopfExample", "kopfexample", true, true},
		"kopf.dev/v1/clusterkopfpeerings":  {"ClusterKopfPeering", "clusterkopfpeering", false, false},
		"example.com/v1/widgets":           {"Widget", "widget", true, true},
		"example.com/v1/policies":          {"Policy", "policy", true, true},
		"example.com/v1/boxes":             {"Box", "box", true, true},
		"example.com/v1alpha1/fullclasses": {"Fullclass", "fullclass", true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := NewCluster(t, name)
			plural := name[strings.LastIndex(name, "/")+1:]
			got := served(t, c, plural)
			if got == nil || got.Kind != tt.kind || got.SingularName != tt.singular || got.Namespaced != tt.namespaced {
				t.Errorf("got %+v", got)
			}
			if status := served(t, c, plural+"/status"); (status != nil) != tt.status {
				t.Errorf("status subresource: %v", status)
			}
		})
	}
}

func TestSomeKindsAreAlwaysServed(t *testing.T) {
	c := NewCluster(t)
	for _, plural := range []string{"namespaces", "events", "leases", "customresourcedefinitions"} {
		if served(t, c, plural) == nil {
			t.Errorf("%s are not served", plural)
		}
	}
	if served(t, c, "pods") != nil {
		t.Error("pods are served")
	}
}

func TestTheFirstObjectCorrectsAGuessedKind(t *testing.T) {
	c := NewCluster(t, "example.com/v1/volumeclaims")
	obj := example("a")
	obj.SetAPIVersion("example.com/v1")
	obj.SetKind("VolumeClaim")
	c.Create(t, obj)
	if got := served(t, c, "volumeclaims").Kind; got != "VolumeClaim" {
		t.Errorf("got %s", got)
	}
	crd := c.Get(t, "crds", "", "volumeclaims.example.com")
	if kind := lookup(crd, "status.acceptedNames.kind"); kind != "VolumeClaim" {
		t.Errorf("in the definition: %s", kind)
	}
}

func TestDefinedKinds(t *testing.T) {
	c := NewCluster(t)
	c.Define(t,
		Kind{Group: "example.com", Version: "v1", Plural: "things", Kind: "Stuff", ShortNames: []string{"st"}, Categories: []string{"all"}},
		Kind{Group: "example.com", Version: "v2", Plural: "things", Kind: "Stuff", StatusSubresource: true},
	)
	got := served(t, c, "things")
	if got.Kind != "Stuff" || got.Namespaced || !cmp.Equal(got.ShortNames, []string{"st"}) {
		t.Errorf("got %+v", got)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v2", "kind": "Stuff", "metadata": map[string]any{"name": "a"}}}
	c.Create(t, obj)
	if got := c.Get(t, "example.com/v1/things", "", "a").GetAPIVersion(); got != "example.com/v1" {
		t.Errorf("read in version %s", got)
	}
	if got := c.Get(t, "st", "", "a").GetName(); got != "a" {
		t.Errorf("by the short name: %s", got)
	}
}

func TestMistakesFailTheTest(t *testing.T) {
	tests := map[string]struct {
		do   func(t testing.TB)
		want string
	}{
		"no version":        {func(t testing.TB) { NewCluster(t, "kopfexamplez") }, "group/version/plural"},
		"too many parts":    {func(t testing.TB) { NewCluster(t, "a/b/c/d") }, "group/version/plural"},
		"empty part":        {func(t testing.TB) { NewCluster(t, "a//c") }, "empty"},
		"unknown core kind": {func(t testing.TB) { NewCluster(t, "v1/things") }, "is unknown"},
		"not served":        {func(t testing.TB) { NewCluster(t).Get(t, "pods", "default", "a") }, "NewCluster"},
		"kind not served":   {func(t testing.TB) { NewCluster(t).Create(t, example("a")) }, "NewCluster"},
		"not there":         {func(t testing.TB) { NewCluster(t, examples).Get(t, examples, "default", "a") }, "not found"},
		"cluster-scoped":    {func(t testing.TB) { NewCluster(t).Get(t, "namespaces", "default", "a") }, "cluster-scoped"},
		"refused": {func(t testing.TB) { c := NewCluster(t, examples); c.Create(t, example("a")); c.Create(t, example("a")) },
			"already exists"},
		"no type": {func(t testing.TB) { NewCluster(t, examples).Create(t, &struct{ metav1.ObjectMeta }{}) }, "TypeMeta"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			fake := &failing{TB: t}
			done := make(chan struct{})
			go func() { defer close(done); tt.do(fake) }()
			<-done
			if !strings.Contains(fake.message, tt.want) {
				t.Errorf("failed with %q, want %q", fake.message, tt.want)
			}
		})
	}
}

// failing records the failure of a test.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = sprintf(format, args...)
	runtime.Goexit()
}

func (f *failing) Fatal(args ...any) { f.Fatalf("%v", args...) }
