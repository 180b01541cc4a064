package metacontroller

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const (
	catsets    = "zoo.example.com/v1/catsets"
	pods       = "v1/pods"
	claims     = "v1/persistentvolumeclaims"
	services   = "v1/services"
	configmaps = "v1/configmaps"
	revised    = "metacontroller.k8s.io/v1alpha1/controllerrevisions"
)

// zoo is a cluster with the definitions of Metacontroller: the real control plane under
// "gopf exec", and otherwise one in memory.
type zoo struct {
	*gopftest.Cluster
	t        *testing.T
	ns, name string // name is that of the controller
}

func newZoo(t *testing.T) zoo {
	t.Helper()
	c := gopftest.AnyCluster(t, pods, claims, services, configmaps)
	c.Load(t, "testdata/definitions.yaml")
	c.Define(t, gopftest.Kind{Group: "zoo.example.com", Version: "v1", Plural: "catsets", Kind: "CatSet", Namespaced: true, StatusSubresource: true})
	ns := c.Namespace(t)
	return zoo{c, t, ns, "zoo-" + ns[len(ns)-5:]} // a finalizer with the name has at most 63 bytes
}

// serve runs the controllers of this test only.
func (z zoo) serve() (stop func()) {
	z.t.Helper()
	op := gopf.New(gopf.Identity("metacontroller.example.com"))
	op.Settings.Peering.Standalone = true // other tests define peerings
	Declare(op, Options{Target: labels.SelectorFromSet(labels.Set{"test": z.ns}), Discovery: time.Second})
	return gopftest.Start(z.t, op, z.Cluster)
}

// create creates an object in the namespace of the test.
func (z zoo) create(fields map[string]any) *unstructured.Unstructured {
	z.t.Helper()
	obj := &unstructured.Unstructured{Object: fields}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(z.ns)
	}
	return z.Create(z.t, obj)
}

// controller creates a controller resource.
func (z zoo) controller(kind string, spec map[string]any) {
	z.t.Helper()
	z.Create(z.t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": kind,
		"metadata": map[string]any{"name": z.name, "labels": map[string]any{"test": z.ns}}, "spec": spec,
	}})
}

// ready plays the kubelet for a pod.
func (z zoo) ready(name string) {
	z.t.Helper()
	z.PatchStatus(z.t, pods, z.ns, name, map[string]any{"status": map[string]any{
		"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
	}})
}

func (z zoo) uids(resource string, names ...string) map[string]types.UID {
	z.t.Helper()
	all := map[string]types.UID{}
	for _, name := range names {
		all[name] = z.Get(z.t, resource, z.ns, name).GetUID()
	}
	return all
}

// left returns a child as Metacontroller creates it: with the annotation of its last applied
// form, and its parent as the controller. A nil parent means an orphan.
func (z zoo) left(parent *unstructured.Unstructured, desired map[string]any) map[string]any {
	z.t.Helper()
	form := &unstructured.Unstructured{Object: desired}
	form.SetNamespace(z.ns)
	text, err := json.Marshal(form.Object)
	if err != nil {
		z.t.Fatal(err)
	}
	child := form.DeepCopy()
	annotations := child.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["metacontroller.k8s.io/last-applied-configuration"] = string(text)
	child.SetAnnotations(annotations)
	if parent != nil {
		yes := true
		child.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: parent.GetAPIVersion(), Kind: parent.GetKind(), Name: parent.GetName(), UID: parent.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes,
		}})
	}
	return child.Object
}

func cat(i int, image string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": fmt.Sprint("cat-", i), "labels": map[string]any{"app": "cats"}},
		"spec": map[string]any{"automountServiceAccountToken": false, "containers": []any{map[string]any{"name": "cat", "image": image}}},
	}
}

func claim(i int) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"name": fmt.Sprint("data-cat-", i), "labels": map[string]any{"app": "cats"}},
		"spec": map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}},
	}
}

// catHook is the hook of a set of pods with claims.
func catHook(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Parent struct {
				Spec struct {
					Replicas int    `json:"replicas"`
					Image    string `json:"image"`
				} `json:"spec"`
			} `json:"parent"`
			Children map[string]map[string]any `json:"children"`
		}
		if json.NewDecoder(r.Body).Decode(&request) != nil {
			return // the operator stops
		}
		children := []any{}
		for i := range request.Parent.Spec.Replicas {
			children = append(children, cat(i, request.Parent.Spec.Image), claim(i))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"children": children, "status": map[string]any{"cats": len(request.Children["Pod.v1"])}})
	}))
	t.Cleanup(server.Close)
	return server
}

// revision returns a ControllerRevision as Metacontroller creates it.
func (z zoo) revision(parent *unstructured.Unstructured, spec map[string]any, names ...any) map[string]any {
	z.t.Helper()
	patch := map[string]any{"spec": spec}
	name, err := RevisionName("catsets", "zoo.example.com", string(parent.GetUID()), patch)
	if err != nil {
		z.t.Fatal(err)
	}
	obj := z.left(parent, map[string]any{
		"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "ControllerRevision", "parentPatch": patch,
		"metadata": map[string]any{"name": name, "labels": map[string]any{
			"app": "cats", "metacontroller.k8s.io/apiGroup": "zoo.example.com", "metacontroller.k8s.io/resource": "catsets",
		}},
		"children": []any{map[string]any{"apiGroup": "", "kind": "Pod", "names": names}},
	})
	unstructured.RemoveNestedField(obj, "metadata", "annotations")
	return obj
}

// members returns the children that a revision names.
func (z zoo) members(name string) []string {
	z.t.Helper()
	obj, exists := z.Lookup(z.t, revised, z.ns, name)
	if !exists {
		return nil
	}
	var names []string
	for _, m := range members(obj) {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}

func TestACatSetIsTakenOverInTheMiddleOfARolloutOnAnyCluster(t *testing.T) {
	t.Parallel()
	z := newZoo(t)
	specOf := func(image string) map[string]any {
		return map[string]any{
			"replicas": int64(4), "image": image, "selector": map[string]any{"matchLabels": map[string]any{"app": "cats"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "cats"}}},
		}
	}
	parent := z.create(map[string]any{"apiVersion": "zoo.example.com/v1", "kind": "CatSet", "metadata": map[string]any{"name": "cats"}, "spec": specOf("cat:2")})
	// Metacontroller has replaced cat-0. Nobody owns cat-3, which has the new form.
	for i, image := range []string{"cat:2", "cat:1", "cat:1", "cat:2"} {
		owner := parent
		if i == 3 {
			owner = nil
		}
		z.create(z.left(owner, cat(i, image)))
		z.create(z.left(parent, claim(i)))
		z.ready(fmt.Sprint("cat-", i))
	}
	older := z.create(z.revision(parent, specOf("cat:1"), "cat-1", "cat-2")).GetName()
	latest := z.create(z.revision(parent, specOf("cat:2"), "cat-0")).GetName()
	before, data := z.uids(pods, "cat-0", "cat-1", "cat-2", "cat-3"), z.uids(claims, "data-cat-0", "data-cat-1", "data-cat-2", "data-cat-3")
	versions := map[string]string{}
	for name := range data {
		versions[name] = z.Get(t, claims, z.ns, name).GetResourceVersion()
	}
	z.controller("CompositeController", map[string]any{
		"parentResource": map[string]any{"apiVersion": "zoo.example.com/v1", "resource": "catsets"},
		"childResources": []any{
			map[string]any{"apiVersion": "v1", "resource": "pods", "updateStrategy": map[string]any{
				"method": "RollingRecreate", "statusChecks": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
			}},
			map[string]any{"apiVersion": "v1", "resource": "persistentvolumeclaims"},
		},
		"hooks": map[string]any{"sync": map[string]any{"webhook": map[string]any{"url": catHook(t).URL + "/sync"}}},
	})
	replaced := func(name string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool { return o.GetUID() != before[name] }
	}
	waits := func(reason string) {
		z.Wait(t, catsets, z.ns, "cats", func(o *unstructured.Unstructured) bool {
			list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			return slices.ContainsFunc(list, func(c any) bool { m, _ := c.(map[string]any); return m["type"] == "Updated" && m["reason"] == reason })
		})
	}

	stop := z.serve()
	z.Wait(t, pods, z.ns, "cat-1", replaced("cat-1"))
	waits("RolloutWaiting") // for cat-1, which is not ready
	stop()
	// This is the state to hand back: the revisions, and the annotations of the pods.
	if got := fmt.Sprint(z.members(latest), z.members(older)); got != "[cat-0 cat-1 cat-3] [cat-2]" {
		t.Errorf("the revisions name %s", got)
	}
	form := z.left(parent, cat(1, "cat:2"))["metadata"].(map[string]any)
	made := z.Get(t, pods, z.ns, "cat-1")
	if want := form["annotations"].(map[string]any); made.GetAnnotations()[LastApplied] != want[LastApplied] || metav1.GetControllerOf(made).UID != parent.GetUID() {
		t.Errorf("cat-1 is %v", made.Object)
	}
	now := z.uids(pods, "cat-0", "cat-2", "cat-3")
	for name, uid := range now {
		if uid != before[name] {
			t.Errorf("%s was recreated", name)
		}
	}
	if ref := metav1.GetControllerOf(z.Get(t, pods, z.ns, "cat-3")); ref == nil || ref.UID != parent.GetUID() {
		t.Errorf("cat-3 was not adopted: %v", ref)
	}

	z.serve()
	z.ready("cat-1")
	z.Wait(t, pods, z.ns, "cat-2", replaced("cat-2"))
	z.ready("cat-2")
	waits("OnLatestRevision")
	z.WaitGone(t, revised, z.ns, older)
	if got := fmt.Sprint(z.members(latest)); got != "[cat-0 cat-1 cat-2 cat-3]" {
		t.Errorf("the revision names %s", got)
	}
	for name, uid := range map[string]types.UID{"cat-0": before["cat-0"], "cat-1": made.GetUID(), "cat-3": before["cat-3"]} {
		if got := z.Get(t, pods, z.ns, name).GetUID(); got != uid {
			t.Errorf("%s was recreated", name)
		}
	}
	for name := range maps.Keys(data) {
		if got := z.Get(t, claims, z.ns, name); got.GetUID() != data[name] || !z.Real() && got.GetResourceVersion() != versions[name] {
			t.Errorf("%s was changed: %v", name, got.Object)
		}
	}
}

func TestADecoratorKeepsItsAttachmentsOnAnyCluster(t *testing.T) {
	t.Parallel()
	z := newZoo(t)
	var calls, finalized atomic.Int32
	service := func(port int64) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "front"},
			"spec": map[string]any{"selector": map[string]any{"app": "front"}, "ports": []any{map[string]any{"name": "http", "port": port}}},
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Object     map[string]any `json:"object"`
			Finalizing bool           `json:"finalizing"`
		}
		if json.NewDecoder(r.Body).Decode(&request) != nil {
			return // the operator stops
		}
		if request.Finalizing {
			finalized.Add(1)
			_ = json.NewEncoder(w).Encode(map[string]any{"attachments": []any{}, "finalized": true})
			return
		}
		text, _, _ := unstructured.NestedString(request.Object, "data", "port")
		var port int64
		if err := utiljson.Unmarshal([]byte(text), &port); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"labels": map[string]any{"served": "yes"}, "attachments": []any{service(port)}})
		calls.Add(1)
	}))
	defer server.Close()
	parent := z.create(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"port": "80"},
		"metadata": map[string]any{
			"name": "front", "labels": map[string]any{"serve": z.ns, "served": "yes"}, "finalizers": []any{"metacontroller.io/decoratorcontroller-" + z.name},
		},
	})
	desired := &unstructured.Unstructured{Object: service(80)}
	desired.SetAnnotations(map[string]string{"metacontroller.k8s.io/decorator-controller": z.name})
	attached := z.create(z.left(parent, desired.Object))
	hook := map[string]any{"webhook": map[string]any{"url": server.URL + "/hook"}}
	z.controller("DecoratorController", map[string]any{
		"resources":   []any{map[string]any{"apiVersion": "v1", "resource": "configmaps", "labelSelector": map[string]any{"matchLabels": map[string]any{"serve": z.ns}}}},
		"attachments": []any{map[string]any{"apiVersion": "v1", "resource": "services", "updateStrategy": map[string]any{"method": "InPlace"}}},
		"hooks":       map[string]any{"sync": hook, "finalize": hook},
	})
	z.serve()
	for deadline := time.Now().Add(30 * time.Second); calls.Load() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the hook was not called")
		}
	}
	time.Sleep(500 * time.Millisecond) // a write would follow
	for resource, was := range map[string]*unstructured.Unstructured{configmaps: parent, services: attached} {
		if got := z.Get(t, resource, z.ns, "front"); got.GetResourceVersion() != was.GetResourceVersion() {
			t.Errorf("the takeover wrote %v", got.Object)
		}
	}
	z.Patch(t, configmaps, z.ns, "front", map[string]any{"data": map[string]any{"port": "81"}})
	z.Wait(t, services, z.ns, "front", func(o *unstructured.Unstructured) bool {
		ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
		first, _ := ports[0].(map[string]any)
		return len(ports) == 1 && fmt.Sprint(first["port"]) == "81" && o.GetUID() == attached.GetUID()
	})
	z.Delete(t, configmaps, z.ns, "front")
	z.WaitGone(t, configmaps, z.ns, "front")
	z.WaitGone(t, services, z.ns, "front")
	if finalized.Load() == 0 {
		t.Error("the finalize hook was not called")
	}
}
