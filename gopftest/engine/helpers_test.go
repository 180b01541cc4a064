// Package engine_test runs whole operators on the in-memory cluster, in virtual time.
package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/logs"
)

const (
	resource  = "kopf.dev/v1/kopfexamples"
	annotated = "kopf.zalando.org/last-handled-configuration"
	bound     = "kopf.zalando.org/gopf.bound"
)

// Example is the type of the objects in the tests.
type Example struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Field string   `json:"field,omitempty"`
		Items []string `json:"items,omitempty"`
	} `json:"spec"`
	Status map[string]any `json:"status,omitempty"`
}

func example(name, field string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec":     map[string]any{"field": field},
	}}
}

// calls records the calls of handlers.
type calls struct {
	mu    sync.Mutex
	lines []string
}

func (c *calls) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}

func (c *calls) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.lines...)
}

// count returns how many lines begin with the text.
func (c *calls) count(text string) (n int) {
	for _, line := range c.all() {
		if strings.HasPrefix(line, text) {
			n++
		}
	}
	return n
}

// handler returns a handler that records its argument.
func (c *calls) handler(name string) gopf.ChangeFunc[*Example] {
	return func(_ context.Context, ch *gopf.Change[*Example]) error {
		c.add("%s %s %s", name, ch.Reason, ch.Object.Spec.Field)
		return nil
	}
}

// failing returns a handler that fails the given number of times before it succeeds.
func (c *calls) failing(name string, times int, pause time.Duration) gopf.ChangeFunc[*Example] {
	return func(_ context.Context, ch *gopf.Change[*Example]) error {
		c.add("%s %s %s #%d", name, ch.Reason, ch.Object.Spec.Field, ch.Retry)
		if ch.Retry < times {
			return gopf.RetryAfter(pause, errors.New("not yet"))
		}
		return nil
	}
}

// bubble runs a test in virtual time with a cluster.
func bubble(t *testing.T, test func(t *testing.T, c *gopftest.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, gopftest.NewCluster(t, resource))
	})
}

// settle waits until the operator has nothing left to do now.
func settle() {
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
}

func testLog(t *testing.T) *slog.Logger {
	return slog.New(logs.New(t.Output(), logs.Options{Format: logs.Full, Level: slog.LevelDebug, Prefix: true}))
}

// lines records log lines.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(b))
	return len(b), nil
}

func (l *lines) logger() *slog.Logger {
	return slog.New(logs.New(l, logs.Options{Level: slog.LevelDebug, Prefix: true}))
}

// has reports whether a line contains all of the words.
func (l *lines) has(words ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.text, func(line string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
	})
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func get(t *testing.T, c *gopftest.Cluster, name string) *unstructured.Unstructured {
	t.Helper()
	return c.Get(t, resource, "default", name)
}

// ours reports whether the request came from the operator's account.
func ours(r gopftest.Request) bool { return r.Header.Get("Impersonate-User") == "" }

func patches(c *gopftest.Cluster) int {
	n := 0
	for _, r := range c.Writes("kopfexamples") {
		if r.Verb == "patch" && ours(r) {
			n++
		}
	}
	return n
}
