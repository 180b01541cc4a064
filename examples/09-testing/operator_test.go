package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const resource = "kopf.dev/v1/kopfexamples"

func object(name string, spec map[string]any) gopf.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1",
		"kind":       "KopfExample",
		"metadata":   map[string]any{"name": name, "namespace": "default"},
		"spec":       spec,
	}}
}

// TestADurationIsNeeded calls the handler as a plain function.
func TestADurationIsNeeded(t *testing.T) {
	call := gopftest.Change(t, gopftest.NewCluster(t, resource), object("a", nil))
	err := create(t.Context(), call.Change)
	if _, ok := errors.AsType[*gopf.PermanentError](err); !ok {
		t.Errorf("got %v, want a permanent error", err)
	}
}

// TestTheMessageIsInTheStatus runs the whole operator on an in-memory cluster, in
// virtual time.
func TestTheMessageIsInTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := gopftest.NewCluster(t, resource)
		gopftest.Start(t, newOperator(), cluster)

		cluster.Create(t, object("a", map[string]any{"duration": "1m"}))
		synctest.Wait() // until the operator is idle

		status := cluster.Get(t, resource, "default", "a").Object["status"].(map[string]any)
		if status["message"] != "It will take 1m." {
			t.Errorf("the status is %v", status)
		}
	})
}

// TestTheProgram runs the program with its command line: on an in-memory cluster, or
// on a real one with "gopf exec -- go test".
func TestTheProgram(t *testing.T) {
	cluster := gopftest.AnyCluster(t)
	cluster.Load(t, "../crd.yaml")
	program := gopftest.RunCommand(t, newOperator(), cluster, "run", "--namespace=default", "--standalone", "--verbose")

	cluster.Create(t, object("kopf-example-9", map[string]any{"duration": "1m"}))
	defer cluster.Delete(t, resource, "default", "kopf-example-9")
	gopftest.Until(t, "the object is handled", func() bool {
		return strings.Contains(program.Output(), "[default/kopf-example-9] Creation is processed: 1 succeeded")
	})

	if code := program.Stop(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	for _, line := range []string{
		"[default/kopf-example-9] Creation is in progress:",
		"[default/kopf-example-9] Something was logged here.",
	} {
		if !strings.Contains(program.Output(), line) {
			t.Errorf("the output lacks %q", line)
		}
	}
}
