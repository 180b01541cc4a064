package metacontroller

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const (
	zooGroup    = "zoo.example.com"
	replicasets = "apps/v1/replicasets"
	daemonsets  = "apps/v1/daemonsets"
	stateful    = "apps/v1/statefulsets"
	secrets     = "v1/secrets"
	bindings    = "rbac.authorization.k8s.io/v1/rolebindings"
	roles       = "rbac.authorization.k8s.io/v1/clusterroles"
	crds        = "apiextensions.k8s.io/v1/customresourcedefinitions"
)

// example is a controller of the kind that Metacontroller's repository shows as an example.
type example struct {
	name  string
	kinds []gopftest.Kind
	// controllers are the controller resources. $NS is the namespace of the example, $HOOK the URL
	// of its hooks, without the name.
	controllers string
	hooks       map[string]func(asked) map[string]any
	// server starts the server of the hooks, and returns its URL. Nil means one without TLS.
	server func(zoo, http.Handler) string
	// live plays the user, and the kubelet.
	live func(t *testing.T, z zoo)
}

// asked is a request of a hook.
type asked struct {
	parent            *unstructured.Unstructured
	children, related objects
	finalizing        bool
}

// spec returns a text of the spec of the parent.
func (a asked) spec(field string) string { return scalar(a.parent, "spec", field) }

// number returns a number of the spec of the parent.
func (a asked) number(field string) int {
	n, _, _ := unstructured.NestedInt64(a.parent.Object, "spec", field)
	return int(n)
}

// scalar returns a scalar field of an object as text; "" if there is none.
func scalar(o *unstructured.Unstructured, path ...string) string {
	if o == nil {
		return ""
	}
	v, ok, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	if !ok {
		return ""
	}
	return fmt.Sprint(v)
}

// objectOf returns the object of a YAML text.
func objectOf(format string, args ...any) map[string]any {
	text, err := yaml.YAMLToJSON(fmt.Appendf(nil, format, args...))
	if err != nil {
		panic(err)
	}
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		panic(err)
	}
	return object
}

// children returns the response of a composite hook.
func children(status map[string]any, list ...any) map[string]any {
	if list == nil {
		list = []any{}
	}
	return map[string]any{"status": status, "children": list}
}

// decodeAsked reads the request of a hook. The maps of objects keep their names.
func decodeAsked(text []byte) (a asked, err error) {
	var body map[string]any
	if err := utiljson.Unmarshal(text, &body); err != nil {
		return a, err
	}
	group := func(names ...string) objects {
		all := objects{}
		for _, name := range names {
			kinds, _ := body[name].(map[string]any)
			for kind, members := range kinds {
				all[kind] = map[string]*unstructured.Unstructured{}
				for key, o := range members.(map[string]any) {
					all[kind][key] = &unstructured.Unstructured{Object: o.(map[string]any)}
				}
			}
		}
		return all
	}
	for _, name := range []string{"parent", "object"} {
		if o, ok := body[name].(map[string]any); ok {
			a.parent = &unstructured.Unstructured{Object: o}
		}
	}
	a.children, a.related = group("children", "attachments"), group("related")
	a.finalizing, _ = body["finalizing"].(bool)
	return a, nil
}

// hookServer serves the hooks of an example.
func (e example) hookServer(t *testing.T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return // the operator stops
		}
		hook := e.hooks[strings.TrimPrefix(r.URL.Path, "/")]
		a, err := decodeAsked(text)
		if err != nil || hook == nil {
			t.Errorf("%s: %v", r.URL.Path, err)
			http.Error(w, "no such hook", http.StatusNotFound)
			return
		}
		response, err := utiljson.Marshal(hook(a))
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(response)
	})
}

// apply creates the objects of a YAML text.
func (z zoo) apply(text string) {
	z.t.Helper()
	for document := range strings.SplitSeq(strings.ReplaceAll(text, "$NS", z.ns), "\n---\n") {
		z.Create(z.t, &unstructured.Unstructured{Object: objectOf("%s", document)})
	}
}

// field waits until a field has a value. "" means no field.
func (z zoo) field(resource, name, value string, path ...string) *unstructured.Unstructured {
	z.t.Helper()
	return z.Wait(z.t, resource, z.ns, name, func(o *unstructured.Unstructured) bool { return scalar(o, path...) == value })
}

// patch changes an object of the example.
func (z zoo) patch(resource, name, patch string, args ...any) {
	z.t.Helper()
	z.Patch(z.t, resource, z.ns, name, objectOf(patch, args...))
}

// absent reports an object that must not exist.
func (z zoo) absent(resource, namespace, name string) {
	z.t.Helper()
	if o, exists := z.Lookup(z.t, resource, namespace, name); exists {
		z.t.Errorf("there is %v", o.Object)
	}
}

// space creates one more namespace.
func (z zoo) space(suffix, labels string) string {
	z.t.Helper()
	z.apply(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: $NS-%s, labels: {%s}}}", suffix, labels))
	return z.ns + "-" + suffix
}

// is returns a condition for a field.
func is(value string, path ...string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool { return scalar(o, path...) == value }
}

// plainServer starts a server without TLS.
func plainServer(z zoo, hooks http.Handler) string {
	server := httptest.NewServer(hooks)
	z.t.Cleanup(server.Close)
	return server.URL
}

func TestTheExampleControllersOnAnyCluster(t *testing.T) {
	t.Parallel()
	c := gopftest.AnyCluster(t, pods, claims, services, configmaps, secrets, replicasets, daemonsets, stateful, bindings, roles)
	c.Load(t, "testdata/definitions.yaml")
	examples := slices.Concat(compositeExamples, decoratorExamples, relatedExamples)
	var kinds []gopftest.Kind
	for _, e := range examples {
		for _, k := range e.kinds {
			k.Group, k.Version, k.StatusSubresource = zooGroup, "v1", true
			kinds = append(kinds, k)
		}
	}
	c.Define(t, kinds...)
	test := c.Namespace(t)
	id := test[len(test)-5:]
	op := gopf.New(gopf.Identity("metacontroller.example.com"))
	op.Settings.Peering.Standalone = true // other tests define peerings
	Declare(op, Options{Target: labels.SelectorFromSet(labels.Set{"test": test}), Discovery: time.Second})
	gopftest.Start(t, op, c)
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			z := zoo{c, t, c.Namespace(t), e.name + "-" + id}
			serve := e.server
			if serve == nil {
				serve = plainServer
			}
			z.controllers(e.controllers, serve(z, e.hookServer(t)), test)
			e.live(t, z)
		})
	}
}

// controllers creates controller resources with unique names. They get the label that
// selects them, unless they have one.
func (z zoo) controllers(text, url, test string) {
	z.t.Helper()
	text = strings.NewReplacer("$NS", z.ns, "$HOOK", url).Replace(text)
	for i, document := range strings.Split(text, "\n---\n") {
		o := &unstructured.Unstructured{Object: objectOf("%s", document)}
		o.SetAPIVersion(Group + "/" + Version)
		o.SetName(fmt.Sprint(z.name, "-", i))
		if o.GetLabels() == nil {
			o.SetLabels(map[string]string{"test": test})
		}
		z.Create(z.t, o)
	}
}
