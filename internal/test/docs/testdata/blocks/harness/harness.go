// Package harness runs the code of pages on a cluster: in memory, or on a real one.
package harness

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/logs"
)

// Case is one handler or one operator of a page.
type Case struct {
	Name string
	Run  func(t *testing.T, c *gopftest.Cluster, namespace string)
}

// kinds are those that pages are about.
var kinds = map[string][3]string{
	"Database":     {"example.com/v1/databases", "example.com/v1", "Database"},
	"Website":      {"example.com/v1/websites", "example.com/v1", "Website"},
	"Example":      {"kopf.dev/v1/kopfexamples", "kopf.dev/v1", "KopfExample"},
	"Unstructured": {"kopf.dev/v1/kopfexamples", "kopf.dev/v1", "KopfExample"},
}

// Cluster has all kinds of the pages.
func Cluster(t *testing.T) *gopftest.Cluster {
	t.Helper()
	return gopftest.AnyCluster(t, "example.com/v1/databases", "example.com/v1/websites", "kopf.dev/v1/kopfexamples", "apps/v1/deployments",
		"batch/v1/jobs", "v1/pods", "v1/persistentvolumeclaims", "v1/configmaps")
}

// Namespace makes a namespace with the objects that blocks take for granted.
func Namespace(t *testing.T, c *gopftest.Cluster, namespace string) {
	t.Helper()
	c.CreateNamespace(t, namespace)
	pod := map[string]any{"containers": []any{map[string]any{"name": "web", "image": "nginx"}}}
	labels := map[string]any{"app": "web"}
	meta := map[string]any{"name": "web", "namespace": namespace, "labels": labels}
	c.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
		"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod}},
	}})
}

// finishJob makes a Job of the object and lets it succeed, as its controller would.
func finishJob(t *testing.T, c *gopftest.Cluster, owner *unstructured.Unstructured) {
	t.Helper()
	c.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"name": "job", "namespace": owner.GetNamespace(), "labels": map[string]any{"app": "databases"},
			"ownerReferences": []any{map[string]any{"apiVersion": owner.GetAPIVersion(), "kind": owner.GetKind(), "name": owner.GetName(),
				"uid": string(owner.GetUID()), "controller": true}}},
		"spec": map[string]any{"suspend": true, "template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "containers": []any{map[string]any{"name": "main", "image": "busybox"}}}}},
	}})
	time.Sleep(time.Second) // the operator has seen it without the field
	c.PatchStatus(t, "batch/v1/jobs", owner.GetNamespace(), "job", map[string]any{"status": map[string]any{"succeeded": 1}})
}

// object is one of the kind that T is about.
func object(kind, namespace string) *unstructured.Unstructured {
	k := kinds[kind]
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": k[1], "kind": k[2],
		"metadata": map[string]any{"name": "mine", "namespace": namespace},
		"spec":     map[string]any{"size": int64(1), "replicas": int64(1), "host": "a.example.com", "field": "value"},
	}}
}

func typed[T gopf.Object](t *testing.T, c *gopftest.Cluster, namespace string) T {
	t.Helper()
	kind := reflect.TypeFor[T]().Elem().Name()
	if kinds[kind][0] == "" {
		t.Fatalf("the test does not know objects of the type %s", kind)
	}
	c.Create(t, object(kind, namespace))
	return gopftest.Get[T](t, c, kinds[kind][0], namespace, "mine")
}

// handled fails the test unless the handler succeeded or waits for something.
func handled(t *testing.T, err error) {
	t.Helper()
	if _, waits := errors.AsType[*gopf.TemporaryError](err); err != nil && !waits {
		t.Errorf("the handler failed: %v", err)
	}
}

// Change calls a handler and writes what it asked for.
func Change[T gopf.Object](name string, fn gopf.ChangeFunc[T]) Case {
	return Case{name, func(t *testing.T, c *gopftest.Cluster, namespace string) {
		call := gopftest.Change(t, c, typed[T](t, c, namespace), gopftest.HandlerID("handler"))
		handled(t, call.Run(fn))
		call.Apply()
	}}
}

// Tick calls a timer and writes what it asked for.
func Tick[T gopf.Object](name string, fn func(context.Context, *gopf.Tick[T]) error) Case {
	return Case{name, func(t *testing.T, c *gopftest.Cluster, namespace string) {
		call := gopftest.Tick(t, c, typed[T](t, c, namespace))
		handled(t, fn(t.Context(), call.Tick))
		call.Apply()
	}}
}

// Subject calls a function that several handlers share.
func Subject[T gopf.Object](name string, fn func(context.Context, *gopf.Subject[T]) error) Case {
	return Case{name, func(t *testing.T, c *gopftest.Cluster, namespace string) {
		call := gopftest.Subject(t, c, typed[T](t, c, namespace))
		handled(t, fn(t.Context(), call.Subject))
		call.Apply()
	}}
}

// refusals are what API servers say of objects that they do not accept.
var refusals = regexp.MustCompile(`is invalid|Invalid value|Required value|field is immutable|strict decoding|BadRequest|is forbidden|panicked`)

type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Operator runs an operator while an object is created, changed and deleted.
func Operator(name, kind string, declare func(*gopf.Operator)) Case {
	return Case{name, func(t *testing.T, c *gopftest.Cluster, namespace string) {
		op, log := gopf.New(), &lines{}
		declare(op)
		options := logs.Options{Format: logs.Full, Prefix: true, Level: slog.LevelDebug}
		stop := gopftest.Start(t, op, c, gopf.Namespaces(namespace), gopf.Log(slog.New(logs.New(log, options))))
		made := c.Create(t, object(kind, namespace))
		invoked := func() bool {
			return strings.Contains(log.String(), "/mine] ") && strings.Contains(log.String(), "is invoked")
		}
		quiet := func() { // until there is nothing new for a while
			for before := -1; before != len(log.String()); time.Sleep(500 * time.Millisecond) {
				before = len(log.String())
			}
		}
		quiet()
		if strings.Contains(log.String(), "jobs.") {
			finishJob(t, c, made)
			quiet()
		}
		for patience := time.Now().Add(15 * time.Second); !invoked() && time.Now().Before(patience); { // timers may wait
			time.Sleep(100 * time.Millisecond)
		}
		c.Patch(t, kinds[kind][0], namespace, "mine", map[string]any{"spec": map[string]any{"size": 2, "field": "changed"}})
		quiet()
		c.Delete(t, kinds[kind][0], namespace, "mine")
		c.WaitGone(t, kinds[kind][0], namespace, "mine")
		stop()
		for line := range strings.Lines(log.String()) {
			if refusals.MatchString(line) {
				t.Errorf("the API server refuses what the page shows: %s", line)
			}
		}
		if !invoked() {
			t.Errorf("no handler was called:\n%s", log)
		}
	}}
}
