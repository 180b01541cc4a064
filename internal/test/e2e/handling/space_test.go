package handling_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// The resources of the tests.
const (
	examples = "handling.gopf.dev/v1/examples" // with the status subresource
	plains   = "handling.gopf.dev/v1/plains"   // without
	pruneds  = "handling.gopf.dev/v1/pruneds"  // with, but with a schema that prunes it

	finalizer   = "kopf.zalando.org/KopfFinalizerMarker"
	lastHandled = "kopf.zalando.org/last-handled-configuration"
	bound       = "kopf.zalando.org/gopf.bound"
)

var kinds = kit.Kinds{
	Namespaced: map[string]string{
		examples: "Example", plains: "Plain", pruneds: "Pruned",
		"v1/configmaps": "ConfigMap", "v1/secrets": "Secret", "v1/pods": "Pod",
		"apps/v1/deployments": "Deployment", "apps/v1/replicasets": "ReplicaSet",
	},
	Global: map[string]string{"v1/namespaces": "Namespace"},
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
type space struct{ *kit.Space }

func newSpace(t *testing.T) *space {
	t.Helper()
	return &space{kit.NewSpace(t, cluster, "handling-", kinds)}
}

// replace deletes an object and makes another one of the same name.
func (s *space) replace(resource, name string, of fields) error {
	if err := s.Of(resource).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err := s.TryCreate(resource, name, of)
	return err
}

// waitFor waits until the object is as the function wants it, and returns it.
func (s *space) waitFor(resource, name string, wanted func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	s.T.Helper()
	var found *unstructured.Unstructured
	kit.Eventually(s.T, func() error {
		if found = s.Get(resource, name); found == nil {
			return fmt.Errorf("there is no %s of the name %q", resource, name)
		}
		return wanted(found)
	})
	return found
}

// waitGone waits until the object does not exist.
func (s *space) waitGone(resource, name string) {
	s.T.Helper()
	kit.Eventually(s.T, func() error {
		if obj := s.Get(resource, name); obj != nil {
			return fmt.Errorf("%s %s is still there: %v", resource, name, obj.Object["metadata"])
		}
		return nil
	})
}

// waitHandled waits until nothing is left to be done about an object: all that
// is stored on it is its last-handled configuration, which is what it is now.
func (s *space) waitHandled(resource, name, field string) *unstructured.Unstructured {
	s.T.Helper()
	return s.waitFor(resource, name, handled(`{"spec":{"field":"`+field+`"}}`))
}

func handled(essence string) func(*unstructured.Unstructured) error {
	return annotated(map[string]string{lastHandled: essence + "\n"})
}

// annotated checks all annotations but those that bind last-handled configurations
// to the object. These may be there only with the object's uid.
func annotated(want map[string]string) func(*unstructured.Unstructured) error {
	return func(obj *unstructured.Unstructured) error {
		got := obj.GetAnnotations()
		maps.DeleteFunc(got, func(key, value string) bool {
			return strings.HasSuffix(key, "/gopf.bound") && strings.HasPrefix(value, string(obj.GetUID())+".")
		})
		if !maps.Equal(got, want) {
			return fmt.Errorf("annotations are %q, want %q", got, want)
		}
		return nil
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
	writes, calls := o.wire.lines(), d.All()
	for end := time.Now().Add(calm); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if now := o.wire.lines(); !slices.Equal(now, writes) {
			return fmt.Errorf("it writes: %q", now[len(writes):])
		}
		if now := d.All(); !slices.Equal(now, calls) {
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
	kit.Eventually(t, func() error { return o.quiet(d) })
}

func plural(resource string) string { return resource[strings.LastIndex(resource, "/")+1:] }
