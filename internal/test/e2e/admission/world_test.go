package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// Thing is the Go type of the tests' custom resources.
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Field    string `json:"field,omitempty"`
		Size     int    `json:"size,omitempty"`
		Replicas int    `json:"replicas,omitempty"`
	} `json:"spec"`
	Status map[string]any `json:"status,omitempty"`
}

// fields is a part of an object.
type fields = map[string]any

func spec(of fields) fields { return fields{"spec": of} }

// labelled are the fields of an object with labels and a spec.
func labelled(labels, spec fields) fields {
	return fields{"metadata": fields{"labels": labels}, "spec": spec}
}

// world is a namespace and a kind of a test's own: things, with the subresources
// status and scale.
type world struct {
	t         *testing.T
	group     string
	namespace string
	managed   string // the name for webhook configurations
}

var (
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configmaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services   = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	accounts   = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	leases     = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	validating = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	mutating   = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}

	kinds = map[schema.GroupVersionResource]string{
		crds: "CustomResourceDefinition", namespaces: "Namespace", configmaps: "ConfigMap", services: "Service", secrets: "Secret", accounts: "ServiceAccount",
	}
)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, group: fmt.Sprintf("t%08x.reviewed.gopf.dev", rand.Uint32())}
	w.managed = "hooks." + w.group
	w.define()
	w.namespace = w.make(namespaces, "", "", fields{"metadata": fields{"generateName": "reviewed-"}}).GetName()
	t.Cleanup(func() {
		for _, gvr := range []schema.GroupVersionResource{validating, mutating} {
			w.remove(gvr, "", w.managed)
		}
		w.remove(namespaces, "", w.namespace)
	})
	kit.Eventually(t, func() error {
		_, err := w.try(cluster).create("first", fields{}, dryRun)
		return err
	})
	return w
}

// within is the same world for a part of the test.
func (w *world) within(t *testing.T) *world {
	part := *w
	part.t = t
	return &part
}

// define makes the kind, until the test ends.
func (w *world) define() {
	w.t.Helper()
	anything := fields{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	w.make(crds, "", "things."+w.group, fields{"spec": fields{
		"group": w.group, "scope": "Namespaced",
		"names": fields{"plural": "things", "singular": "thing", "kind": "Thing"},
		"versions": []any{fields{
			"name": "v1", "served": true, "storage": true,
			"schema":       fields{"openAPIV3Schema": fields{"type": "object", "properties": fields{"spec": anything, "status": anything}}},
			"subresources": fields{"status": fields{}, "scale": fields{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
		}},
	}})
	w.t.Cleanup(func() { w.remove(crds, "", "things."+w.group) })
}

// things names the resource as declarations do.
func (w *world) things() string { return w.group + "/v1/things" }

func (w *world) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: w.group, Version: "v1", Resource: "things"}
}

// ctx does not end with the test: cleanups need it too.
func (w *world) ctx() context.Context { return context.WithoutCancel(w.t.Context()) }

func (w *world) client(of schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	all := dynamic.NewForConfigOrDie(cluster).Resource(of)
	if namespace == "" {
		return all
	}
	return all.Namespace(namespace)
}

// make makes an object of any kind, with the name unless it is empty.
func (w *world) make(of schema.GroupVersionResource, namespace, name string, with fields) *unstructured.Unstructured {
	w.t.Helper()
	object := &unstructured.Unstructured{Object: with}
	object.SetAPIVersion(of.GroupVersion().String())
	object.SetKind(kinds[of])
	if name != "" {
		object.SetName(name)
	}
	made, err := w.client(of, namespace).Create(w.ctx(), object, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// remove deletes an object of any kind, if it is there.
func (w *world) remove(of schema.GroupVersionResource, namespace, name string) {
	w.t.Helper()
	if err := w.client(of, namespace).Delete(w.ctx(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.t.Error(err)
	}
}

// user makes requests about things, and keeps the warnings that come back.
type user struct {
	*world
	things dynamic.ResourceInterface

	mu       sync.Mutex
	warnings []string
}

// try makes a user with a configuration.
func (w *world) try(config *rest.Config) *user {
	u := &user{world: w}
	config = rest.CopyConfig(config)
	config.WarningHandler = u
	u.things = dynamic.NewForConfigOrDie(config).Resource(w.resource()).Namespace(w.namespace)
	return u
}

// HandleWarningHeader keeps a warning.
func (u *user) HandleWarningHeader(_ int, _, text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.warnings = append(u.warnings, text)
}

// warned are the warnings since the last call.
func (u *user) warned() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer func() { u.warnings = nil }()
	return u.warnings
}

// dryRun is a request that stores nothing.
const dryRun = metav1.DryRunAll

// create makes a thing.
func (u *user) create(name string, of fields, dry ...string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: maps.Clone(of)}
	object.SetAPIVersion(u.group + "/v1")
	object.SetKind("Thing")
	object.SetName(name)
	return u.things.Create(u.ctx(), object, metav1.CreateOptions{DryRun: dry})
}

// patch changes a thing, or a part of it.
func (u *user) patch(name string, change fields, subresources ...string) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return u.things.Patch(u.ctx(), name, types.MergePatchType, raw, metav1.PatchOptions{}, subresources...)
}

func (u *user) delete(name string) error {
	return u.things.Delete(u.ctx(), name, metav1.DeleteOptions{})
}

// must is the result of a request that has to be granted.
func (w *world) must(o *unstructured.Unstructured, err error) *unstructured.Unstructured {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// denied checks that a request was refused with the code by a webhook of ours,
// with a text that has all of the parts.
func denied(t *testing.T, err error, code int32, parts ...string) {
	t.Helper()
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		t.Errorf("it was not refused: %v", err)
		return
	}
	s := status.Status()
	for _, part := range append(parts, "admission webhook", "denied the request") {
		if !strings.Contains(s.Message, part) {
			t.Errorf("%q is not in %q", part, s.Message)
		}
	}
	if s.Code != code {
		t.Errorf("the code is %d, want %d, of %q", s.Code, code, s.Message)
	}
}
