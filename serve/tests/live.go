package tests

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/logs"
	"gopf.dev/gopf/serve"
	"gopf.dev/gopf/serve/expr"
	"gopf.dev/gopf/serve/spec"
)

// host stands for *testing.T outside of go test. It has the methods that package gopftest
// uses.
type host struct {
	testing.TB // nil: other methods must not be called

	name     string
	out      io.Writer       // of the log; nil means that the log is discarded
	ctx      context.Context //nolint:containedctx // the method Context returns it, as that of testing.T does
	mu       sync.Mutex
	problems []string
	cleanups []func()
}

func (h *host) Output() io.Writer {
	if h.out == nil {
		return io.Discard
	}
	return h.out
}
func (h *host) Helper()                        {}
func (h *host) Name() string                   { return h.name }
func (h *host) Context() context.Context       { return h.ctx }
func (h *host) Log(...any)                     {}
func (h *host) Logf(string, ...any)            {}
func (h *host) Error(args ...any)              { h.fail(fmt.Sprint(args...)) }
func (h *host) Errorf(format string, a ...any) { h.fail(fmt.Sprintf(format, a...)) }
func (h *host) Fatal(args ...any)              { h.fail(fmt.Sprint(args...)); runtime.Goexit() }
func (h *host) Fatalf(format string, a ...any) { h.fail(fmt.Sprintf(format, a...)); runtime.Goexit() }
func (h *host) Failed() bool                   { return len(h.failures()) > 0 }
func (h *host) fail(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems = append(h.problems, text)
}

// Cleanup adds a function that run calls at the end, the last one first.
func (h *host) Cleanup(fn func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cleanups = append(h.cleanups, fn)
}

// cleanup takes the last cleanup. nil means that there is none left.
func (h *host) cleanup() func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.cleanups)
	if n == 0 {
		return nil
	}
	fn := h.cleanups[n-1]
	h.cleanups = h.cleanups[:n-1]
	return fn
}

func (h *host) failures() []string { h.mu.Lock(); defer h.mu.Unlock(); return h.problems }

// run calls fn in a new goroutine, which Fatal may end, and then the cleanups.
func (h *host) run(fn func()) []string {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for fn := h.cleanup(); fn != nil; fn = h.cleanup() {
				fn()
			}
		}()
		fn()
	}()
	<-done
	return h.failures()
}

// writer collects log lines.
type writer struct {
	mu sync.Mutex
	r  *runner
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.r.log.Write(p)
}

// live runs the whole operator on a cluster in memory.
func (r *runner) live(ctx context.Context, op *spec.Operator) []string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := &host{name: r.test.Name, ctx: ctx}
	return h.run(func() {
		cluster := r.cluster(h, op)
		declared, err := serve.New(os.DirFS(r.dir), r.operator(), serve.Dir(r.dir))
		if err != nil {
			h.Fatal(err)
		}
		log := slog.New(logs.New(&writer{r: r}, logs.Options{}))
		gopftest.Start(h, declared, cluster, gopf.Log(log))
		steps := steps{runner: r, cluster: cluster, host: h, op: op}
		for i := range r.test.Steps {
			steps.step(ctx, &r.test.Steps[i])
		}
	})
}

// builtIn are resources that handlers may apply without declaring them.
var builtIn = []string{
	"v1/configmaps", "v1/secrets", "v1/services", "v1/serviceaccounts", "v1/pods", "v1/persistentvolumeclaims",
	"apps/v1/deployments", "apps/v1/statefulsets", "apps/v1/daemonsets", "batch/v1/jobs", "batch/v1/cronjobs", "networking.k8s.io/v1/ingresses",
	"rbac.authorization.k8s.io/v1/roles", "rbac.authorization.k8s.io/v1/rolebindings",
}

// cluster returns a cluster with the resources of the operator, and with usual built-in ones.
func (r *runner) cluster(h testing.TB, op *spec.Operator) *gopftest.Cluster {
	var names, definitions []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, res := range op.Resources {
		if res.Definition != "" {
			definitions = append(definitions, filepath.Join(r.dir, filepath.FromSlash(path.Join(path.Dir(r.operator()), res.Definition))))
		} else {
			add(res.Resource)
		}
		for _, handler := range res.Handlers {
			if handler.Reconcile != nil {
				for _, name := range handler.Reconcile.Owns {
					add(name)
				}
			}
		}
	}
	for _, name := range builtIn {
		add(name)
	}
	cluster := gopftest.NewCluster(h, names...)
	cluster.Load(h, definitions...)
	return cluster
}

// steps runs the steps of a test. The object is that of the first apply.
type steps struct {
	runner  *runner
	cluster *gopftest.Cluster
	host    *host
	op      *spec.Operator

	resource, namespace, name string
}

func (s *steps) step(ctx context.Context, step *Step) {
	switch {
	case step.Apply.Present():
		s.apply(step)
	case step.Until != "":
		s.until(ctx, step)
	case step.Delete:
		s.cluster.Delete(s.host, s.resource, s.namespace, s.name)
	case step.Gone:
		s.wait(step, "gone", func() bool {
			_, exists := s.cluster.Lookup(s.host, s.resource, s.namespace, s.name)
			return !exists
		})
	}
}

func (s *steps) apply(step *Step) {
	fields, err := object(os.DirFS(s.runner.dir), s.runner.file, step.Apply)
	if err != nil {
		s.host.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: fields}
	resource := s.resourceOf(obj)
	if resource == "" {
		s.host.Fatalf("%s: the operator serves no resource of the kind %s", step.Pos, obj.GetKind())
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace("default")
	}
	if _, exists := s.cluster.Lookup(s.host, resource, obj.GetNamespace(), obj.GetName()); exists {
		s.cluster.Patch(s.host, resource, obj.GetNamespace(), obj.GetName(), fields)
	} else {
		s.cluster.Create(s.host, obj)
	}
	if s.resource == "" {
		s.resource, s.namespace, s.name = resource, obj.GetNamespace(), obj.GetName()
	}
}

// resourceOf returns the served resource of an object, by group and version: an operator
// rarely serves two kinds of one version.
func (s *steps) resourceOf(obj *unstructured.Unstructured) string {
	gv := obj.GroupVersionKind().GroupVersion()
	for _, r := range s.op.Resources {
		of, err := kind.Parse(r.Resource)
		if err == nil && of.Matches(kind.Info{Group: gv.Group, Version: gv.Version, Kind: obj.GetKind(), Plural: path.Base(r.Resource)}) {
			return r.Resource
		}
	}
	return ""
}

func (s *steps) until(ctx context.Context, step *Step) {
	env, err := expr.NewEnv([]string{"object"})
	if err != nil {
		s.host.Fatal(err)
	}
	condition, err := env.Condition(step.Until)
	if err != nil {
		s.host.Fatalf("%s: %v", step.Pos, err)
	}
	var last any
	s.wait(step, step.Until, func() bool {
		obj, exists := s.cluster.Lookup(s.host, s.resource, s.namespace, s.name)
		if !exists {
			return false
		}
		last = obj.Object
		ok, err := condition.Bool(ctx, map[string]any{"object": obj.Object})
		return err == nil && ok
	}, &last)
}

// wait waits for a condition.
func (s *steps) wait(step *Step, what string, ok func() bool, last ...*any) {
	within := step.Within
	if within == 0 {
		within = 10 * time.Second
	}
	for deadline := time.Now().Add(within); !ok(); {
		select {
		case <-s.host.ctx.Done():
			s.host.Fatalf("%s: %v: %s", step.Pos, context.Cause(s.host.ctx), what)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			detail := ""
			if len(last) > 0 {
				detail = "; the object is " + short(*last[0])
			}
			s.host.Fatalf("%s: not within %v: %s%s", step.Pos, within, what, detail)
		}
	}
}
