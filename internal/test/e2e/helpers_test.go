package e2e

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

var (
	kopfexamples = schema.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: "kopfexamples"}
	namespaces   = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	definitions  = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// objects reads and writes objects of one resource in one namespace.
type objects struct {
	t         *testing.T
	namespace string
	kind      string
	resource  schema.GroupVersionResource
}

// examples are the KopfExamples in a namespace.
func examples(t *testing.T, namespace string) objects {
	return objects{t, namespace, "KopfExample", kopfexamples}
}

// ctx does not end with the test: cleanups need it too.
func (o objects) ctx() context.Context { return context.WithoutCancel(o.t.Context()) }

func (o objects) client() dynamic.ResourceInterface {
	all := dynamic.NewForConfigOrDie(cluster).Resource(o.resource)
	if o.namespace == "" {
		return all
	}
	return all.Namespace(o.namespace)
}

// create makes an object; the fields are all but its apiVersion, kind and name.
func (o objects) create(name string, fields map[string]any) *unstructured.Unstructured {
	o.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range fields {
		object.Object[key] = value
	}
	object.SetAPIVersion(o.resource.GroupVersion().String())
	object.SetKind(o.kind)
	if strings.HasSuffix(name, "-") {
		object.SetGenerateName(name)
	} else {
		object.SetName(name)
	}
	created, err := o.client().Create(o.ctx(), object, metav1.CreateOptions{})
	if err != nil {
		o.t.Fatalf("create %s: %v", name, err)
	}
	return created
}

// get returns the object; nil if there is none.
func (o objects) get(name string) *unstructured.Unstructured {
	o.t.Helper()
	object, err := o.client().Get(o.ctx(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		o.t.Fatalf("get %s: %v", name, err)
	}
	return object
}

// delete asks for the deletion of the object, and does not wait for it.
func (o objects) delete(name string) {
	o.t.Helper()
	if err := o.client().Delete(o.ctx(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		o.t.Errorf("delete %s: %v", name, err)
	}
}

// lastHandled is the annotation that says what the object was like when it was handled.
const lastHandled = "kopf.zalando.org/last-handled-configuration"

// handled tells whether the object has been handled.
func (o objects) handled(name string) bool {
	object := o.get(name)
	return object != nil && object.GetAnnotations()[lastHandled] != ""
}

// awaitHandled waits for that and returns the object.
func (o objects) awaitHandled(name string) *unstructured.Unstructured {
	o.t.Helper()
	kit.Await(o.t, o.namespace+"/"+name+" is handled", func() bool { return o.handled(name) })
	return o.get(name)
}

func allNamespaces(t *testing.T) objects { return objects{t, "", "Namespace", namespaces} }

// namespace makes a namespace for the test.
func namespace(t *testing.T) string {
	t.Helper()
	return namespaceNamed(t, "e2e-")
}

// namespaceNamed makes a namespace; a name that ends with a dash gets a unique end. It is
// not deleted, because the control plane is discarded. A deletion costs about 100 requests,
// and deletions that tests wait for would queue behind hundreds of others.
func namespaceNamed(t *testing.T, name string) string {
	t.Helper()
	return allNamespaces(t).create(name, nil).GetName()
}

// run runs the operator in the namespaces that the options say, on the shared
// cluster unless they name another.
func run(t *testing.T, op *gopf.Operator, options ...gopf.RunOption) *kit.Operator {
	t.Helper()
	op.Settings.Peering.Standalone = true // other tests on the same cluster have peerings
	return kit.Run(t, newLogbook(t), func(ctx context.Context, log *slog.Logger) error {
		return op.Run(ctx, append([]gopf.RunOption{gopf.Cluster(cluster), gopf.Log(log)}, options...)...)
	})
}

func newLogbook(t *testing.T) *kit.Logbook { return kit.NewTitledLogbook(t, "the operator's output") }

// calls are those of a handler, as the names of the objects in their order.
type calls struct {
	mu    sync.Mutex
	names []string
}

func (c *calls) add(object metav1.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, object.GetNamespace()+"/"+object.GetName())
}

func (c *calls) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.names)
}

// greeter is an operator like examples/01-minimal, whose calls are collected.
func greeter(c *calls) *gopf.Operator {
	op := gopf.New()
	op.Resource("kopfexamples").OnCreate("create_fn", func(_ context.Context, change *gopf.Change[gopf.Unstructured]) error {
		c.add(change.Object)
		change.SetResult(map[string]string{"message": "hello world"})
		return nil
	})
	return op
}

// requests are those that were sent with a configuration, but reads.
type requests struct {
	mu   sync.Mutex
	sent []string
}

// config is the shared cluster's, whose requests are collected.
func (r *requests) config() *rest.Config {
	config := rest.CopyConfig(cluster)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return collector{r, next} })
	return config
}

// about are the requests about the object: method and path below the namespace.
func (r *requests) about(name string) (found []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, request := range r.sent {
		if strings.HasSuffix(request, "/"+name) || strings.Contains(request, "/"+name+"/") {
			found = append(found, request)
		}
	}
	return found
}

type collector struct {
	to   *requests
	next http.RoundTripper
}

func (c collector) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "reviews") { // reviews store nothing
		path := strings.Split(r.URL.Path, "/")
		if i := slices.Index(path, "namespaces"); i >= 0 {
			path = path[i+2:]
		}
		c.to.mu.Lock()
		c.to.sent = append(c.to.sent, r.Method+" "+strings.Join(path, "/"))
		c.to.mu.Unlock()
	}
	return c.next.RoundTrip(r)
}

// process is an operator in a process of its own.
type process struct{ *kit.Process }

// operatorVariable makes this executable one of the operators.
const operatorVariable = "GOPF_E2E_OPERATOR"

// startOperator starts one of the operators that this executable can be.
func startOperator(t *testing.T, name string, env []string, args ...string) *process {
	t.Helper()
	return start(t, os.Args[0], append(env, operatorVariable+"="+name), args...)
}

// start starts a program, with KUBECONFIG set unless the variables say otherwise.
func start(t *testing.T, path string, env []string, args ...string) *process {
	t.Helper()
	return &process{kit.Launch(t, kubeconfig, newLogbook(t), env, path, args...)}
}

// build compiles a main package and returns its executable.
func build(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(dir))
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build in %s: %v\n%s", dir, err, out)
	}
	return path
}
