package handling_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// The resources of the tests.
const (
	examples = "handling.gopf.dev/v1/examples" // with the status subresource
	plains   = "handling.gopf.dev/v1/plains"   // without
	pruneds  = "handling.gopf.dev/v1/pruneds"  // with, but with a schema that prunes it

	finalizer   = "kopf.zalando.org/KopfFinalizerMarker"
	lastHandled = "kopf.zalando.org/last-handled-configuration"
)

var kinds = map[string]string{
	examples: "Example", plains: "Plain", pruneds: "Pruned",
	"v1/configmaps": "ConfigMap", "v1/secrets": "Secret", "v1/pods": "Pod", "v1/namespaces": "Namespace",
	"apps/v1/deployments": "Deployment", "apps/v1/replicasets": "ReplicaSet",
}

// Example is the Go type of the tests' custom resources.
type Example struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Field string   `json:"field,omitempty"`
		Items []string `json:"items,omitempty"`
	} `json:"spec"`
	Status map[string]any `json:"status,omitempty"`
}

// fields is a part of an object.
type fields = map[string]any

func spec(field string) fields { return fields{"spec": fields{"field": field}} }

// space is a namespace of a test's own.
type space struct {
	t      *testing.T
	name   string
	client dynamic.Interface
}

// newSpace makes a namespace. It is left behind, as is the control plane.
func newSpace(t *testing.T) *space {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster)
	if err != nil {
		t.Fatal(err)
	}
	s := &space{t: t, client: client}
	s.name = s.create("v1/namespaces", "", fields{"metadata": fields{"generateName": "handling-"}}).GetName()
	return s
}

func (s *space) of(resource string) dynamic.ResourceInterface {
	parts := strings.Split(resource, "/")
	gvr := schema.GroupVersionResource{Version: parts[0], Resource: parts[len(parts)-1]}
	if len(parts) == 3 {
		gvr.Group, gvr.Version = parts[0], parts[1]
	}
	if gvr.Resource == "namespaces" {
		return s.client.Resource(gvr)
	}
	return s.client.Resource(gvr).Namespace(s.name)
}

// create makes an object of the fields, with the name unless it is empty.
func (s *space) create(resource, name string, of fields) *unstructured.Unstructured {
	s.t.Helper()
	obj := &unstructured.Unstructured{Object: toFields(of)}
	obj.SetAPIVersion(strings.TrimSuffix(resource, "/"+plural(resource)))
	obj.SetKind(kinds[resource])
	if name != "" {
		obj.SetName(name)
	}
	made, err := s.of(resource).Create(context.Background(), obj, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return made
}

// replace deletes an object and makes another one of the same name.
func (s *space) replace(resource, name string, of fields) error {
	if err := s.of(resource).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	obj := &unstructured.Unstructured{Object: toFields(of)}
	obj.SetAPIVersion(strings.TrimSuffix(resource, "/"+plural(resource)))
	obj.SetKind(kinds[resource])
	obj.SetName(name)
	_, err := s.of(resource).Create(context.Background(), obj, metav1.CreateOptions{})
	return err
}

// patch changes an object by a merge patch.
func (s *space) patch(resource, name string, change fields, subresources ...string) {
	s.t.Helper()
	if err := s.tryPatch(resource, name, change, subresources...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *space) tryPatch(resource, name string, change fields, subresources ...string) error {
	raw, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = s.of(resource).Patch(context.Background(), name, types.MergePatchType, raw, metav1.PatchOptions{}, subresources...)
	return err
}

// delete asks for the deletion of an object.
func (s *space) delete(resource, name string) {
	s.t.Helper()
	if err := s.of(resource).Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// get reads an object; nil if there is none.
func (s *space) get(resource, name string) *unstructured.Unstructured {
	s.t.Helper()
	obj, err := s.of(resource).Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return obj
}

// waitFor waits until the object is as the function wants it, and returns it.
func (s *space) waitFor(resource, name string, wanted func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	s.t.Helper()
	var found *unstructured.Unstructured
	eventually(s.t, func() error {
		if found = s.get(resource, name); found == nil {
			return fmt.Errorf("there is no %s of the name %q", resource, name)
		}
		return wanted(found)
	})
	return found
}

// waitGone waits until the object does not exist.
func (s *space) waitGone(resource, name string) {
	s.t.Helper()
	eventually(s.t, func() error {
		if obj := s.get(resource, name); obj != nil {
			return fmt.Errorf("%s %s is still there: %v", resource, name, obj.Object["metadata"])
		}
		return nil
	})
}

// waitHandled waits until nothing is left to be done about an object: all that
// is stored on it is its last-handled configuration, which is what it is now.
func (s *space) waitHandled(resource, name, field string) *unstructured.Unstructured {
	s.t.Helper()
	return s.waitFor(resource, name, handled(`{"spec":{"field":"`+field+`"}}`))
}

func handled(essence string) func(*unstructured.Unstructured) error {
	return annotated(map[string]string{lastHandled: essence + "\n"})
}

func annotated(want map[string]string) func(*unstructured.Unstructured) error {
	return func(obj *unstructured.Unstructured) error {
		if got := obj.GetAnnotations(); !maps.Equal(got, want) {
			return fmt.Errorf("annotations are %q, want %q", got, want)
		}
		return nil
	}
}

// limit is how long anything may take on a machine that has much else to do.
const limit = 60 * time.Second

// eventually waits until there is no error any more.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	pause := 5 * time.Millisecond
	for end := time.Now().Add(limit); ; {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v: %v", limit, err)
		}
		time.Sleep(pause)
		pause = min(pause*3/2, 150*time.Millisecond)
	}
}

// stays checks that there is no error, and that none comes up for a while.
func stays(t *testing.T, while time.Duration, check func() error) {
	t.Helper()
	for end := time.Now().Add(while); ; time.Sleep(20 * time.Millisecond) {
		if err := check(); err != nil {
			t.Errorf("it did not stay as it should: %v", err)
			return
		}
		if time.Now().After(end) {
			return
		}
	}
}

// calm is how long it takes to be sure that nothing more happens.
const calm = 500 * time.Millisecond

// quiet watches the operator for a while, and tells what it writes and which
// handlers it calls.
func (o *operator) quiet(d *diary) error {
	writes, calls := o.wire.lines(), d.all()
	for end := time.Now().Add(calm); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if now := o.wire.lines(); !slices.Equal(now, writes) {
			return fmt.Errorf("it writes: %q", now[len(writes):])
		}
		if now := d.all(); !slices.Equal(now, calls) {
			return fmt.Errorf("it calls handlers: %q", now[len(calls):])
		}
	}
	return nil
}

// staysQuiet checks that the operator has nothing more to do.
func (o *operator) staysQuiet(t *testing.T, d *diary) {
	t.Helper()
	if err := o.quiet(d); err != nil {
		t.Errorf("the operator is not done: %v", err)
	}
}

// settles waits until the operator has nothing more to do.
func (o *operator) settles(t *testing.T, d *diary) {
	t.Helper()
	eventually(t, func() error { return o.quiet(d) })
}

func plural(resource string) string { return resource[strings.LastIndex(resource, "/")+1:] }
