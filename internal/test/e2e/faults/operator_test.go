package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

const (
	patients    = "patients"
	finalizer   = "kopf.zalando.org/KopfFinalizerMarker"
	lastHandled = "kopf.zalando.org/last-handled-configuration"
	bound       = "kopf.zalando.org/gopf.bound"
)

var (
	patientsResource  = schema.GroupVersionResource{Group: "faults.gopf.dev", Version: "v1", Resource: patients}
	namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// space is a namespace with its objects, seen past the proxy.
type space struct {
	t       *testing.T
	cluster dynamic.Interface
	name    string
}

// newSpace makes a namespace. It is left behind, as is the control plane.
func newSpace(t *testing.T, cluster *rest.Config) *space {
	t.Helper()
	return newSpaceNamed(t, cluster, "faults-")
}

// newSpaceNamed makes a namespace with a name that begins so.
func newSpaceNamed(t *testing.T, cluster *rest.Config, prefix string) *space {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster)
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	obj.SetGenerateName(prefix)
	made, err := client.Resource(namespaceResource).Create(t.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &space{t: t, cluster: client, name: made.GetName()}
}

func (s *space) objects() dynamic.ResourceInterface {
	return s.cluster.Resource(patientsResource).Namespace(s.name)
}

// ctx does not end with the test: it is waited for what is going on.
func (s *space) ctx() context.Context { return context.WithoutCancel(s.t.Context()) }

func (s *space) create(name, field string) {
	s.t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": patientsResource.GroupVersion().String(), "kind": "Patient", "spec": map[string]any{"field": field},
	}}
	obj.SetName(name)
	if _, err := s.objects().Create(s.ctx(), obj, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *space) change(name, field string) {
	s.t.Helper()
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"field": field}})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.objects().Patch(s.ctx(), name, types.MergePatchType, raw, metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *space) delete(name string) {
	s.t.Helper()
	if err := s.objects().Delete(s.ctx(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// get reads an object; nil if there is none.
func (s *space) get(name string) *Patient {
	s.t.Helper()
	obj, err := s.objects().Get(s.ctx(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	p := &Patient{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, p); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// operator is one that runs behind a proxy.
type operator struct {
	*kit.Operator
	t     *testing.T
	space *space
	proxy *proxy
	notes *notes
	site  string // where it tells its health
}

// treat runs the workload with a fault in each phase, with an operator of its own.
func treat(t *testing.T, f fault, adjust ...func(*gopf.Operator)) *operator {
	t.Helper()
	o := admit(t, adjust...)
	o.live(f)
	return o
}

// admit starts an operator of its own for the test and waits until it watches.
func admit(t *testing.T, adjust ...func(*gopf.Operator)) *operator {
	t.Helper()
	op, n := newOperator()
	for _, a := range adjust {
		a(op)
	}
	o := run(newSpace(t, cluster), newProxy(t, cluster), op, n)
	o.following(patients)
	return o
}

// run runs the operator through the proxy, in the namespace unless the options say
// otherwise.
func run(s *space, p *proxy, op *gopf.Operator, n *notes, options ...gopf.RunOption) *operator {
	s.t.Helper()
	return runAs(s, p, p.config(), op, n, options...)
}

// runAs is run with other credentials, or past the proxy.
func runAs(s *space, p *proxy, config *rest.Config, op *gopf.Operator, n *notes, options ...gopf.RunOption) *operator {
	s.t.Helper()
	o := &operator{t: s.t, space: s, proxy: p, notes: n, site: kit.FreeAddress(s.t)}
	op.Settings.Health.Address = o.site
	if len(options) == 0 {
		options = []gopf.RunOption{gopf.Namespaces(s.name)}
	}
	o.Operator = kit.Run(s.t, kit.NewLogbook(s.t), func(ctx context.Context, log *slog.Logger) error {
		return op.Run(ctx, append(options, gopf.Cluster(config), gopf.Log(log))...)
	})
	return o
}

// following waits until the operator watches the resources to handle them: the
// first watch of all is for the index alone.
func (o *operator) following(resources ...string) {
	o.t.Helper()
	for _, r := range resources {
		kit.Eventually(o.t, func() error {
			if o.proxy.watches(r) < 2 || len(o.proxy.streamsOf(r)) != 1 {
				return fmt.Errorf("the operator does not watch %s", r)
			}
			return nil
		})
	}
}

// health asks the operator how it is.
func (o *operator) health(page string) error {
	resp, err := http.Get("http://" + o.site + "/" + page)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/%s: %d %s", page, resp.StatusCode, text)
	}
	return nil
}
