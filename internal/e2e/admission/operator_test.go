package admission_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf"
	"gopf.dev/gopf/logs"
	"gopf.dev/gopf/webhook"
)

// operator makes an operator with a webhook server on this machine, whose
// configurations are managed.
func (w *world) operator() *gopf.Operator {
	op := gopf.New()
	op.Settings.Admission.Server = webhook.Local{Addr: "127.0.0.1"}
	op.Settings.Admission.Managed = w.managed
	w.probes(op)
	return op
}

// probes declares handlers that refuse ConfigMaps with a label of the test: by them
// it finds out whether the operator is asked.
func (w *world) probes(op *gopf.Operator) {
	refuse := func(context.Context, *gopf.Review[gopf.Unstructured]) error { return gopf.Deny("probed") }
	x := op.Resource("v1/configmaps")
	x.WithLabel(w.group, gopf.Is("validating")).Validate("probe_validating", refuse)
	x.WithLabel(w.group, gopf.Is("mutating")).Mutate("probe_mutating", refuse)
}

// asked waits until the operator is asked for its consent, or is not anymore.
func (w *world) asked(want bool) {
	w.t.Helper()
	for _, which := range []string{"validating", "mutating"} {
		eventually(w.t, func() error {
			_, err := w.client(configmaps, w.namespace).Create(w.ctx(), &unstructured.Unstructured{Object: fields{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"name": "probe", "labels": fields{w.group: which}},
			}}, metav1.CreateOptions{DryRun: []string{dryRun}})
			if refused := err != nil && strings.Contains(err.Error(), "probed"); refused != want || !want && err != nil {
				return fmt.Errorf("the %s webhooks are asked: want %t, got %w", which, want, err)
			}
			return nil
		})
	}
}

// running is an operator in the process of the test.
type running struct {
	*logbook
	t     *testing.T
	ended chan struct{}
	err   error // after ended
	stop  func()
}

// start runs the operator until it is stopped, at the latest at the end of the
// test.
func (w *world) start(op *gopf.Operator, options ...gopf.RunOption) *running {
	w.t.Helper()
	r := &running{logbook: &logbook{out: w.t.Output()}, t: w.t, ended: make(chan struct{})}
	log := slog.New(logs.New(r, logs.Options{Format: logs.Full, Level: slog.LevelDebug, Prefix: true}))
	ctx, cancel := context.WithCancel(w.ctx())
	options = append([]gopf.RunOption{gopf.Cluster(cluster), gopf.Namespaces(w.namespace), gopf.Log(log)}, options...)
	go func() {
		defer close(r.ended)
		r.err = op.Run(ctx, options...)
	}()
	r.stop = func() { cancel(); <-r.ended }
	w.t.Cleanup(r.stop)
	return r
}

// run starts the operator, and waits until it is asked. It must not fail.
func (w *world) run(op *gopf.Operator, options ...gopf.RunOption) *running {
	w.t.Helper()
	r := w.start(op, options...)
	w.t.Cleanup(func() {
		if r.stop(); r.err != nil {
			w.t.Errorf("the operator has failed: %v", r.err)
		}
	})
	w.asked(true)
	return r
}

// fails waits for the end of an operator that cannot run, and returns why.
func (r *running) fails() string {
	r.t.Helper()
	eventually(r.t, func() error {
		select {
		case <-r.ended:
			return nil
		default:
			return fmt.Errorf("the operator runs")
		}
	})
	if r.err == nil {
		r.t.Fatal("the operator has ended well")
	}
	return r.err.Error()
}

// logbook keeps log lines, besides having them printed.
type logbook struct {
	out interface{ Write([]byte) (int, error) }
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Write(p)
	return l.out.Write(p)
}

// with are the lines that contain all of the texts.
func (l *logbook) with(texts ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(strings.Split(l.all.String(), "\n"), func(line string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
	})
}

// says waits for a line with all of the texts.
func (l *logbook) says(t *testing.T, texts ...string) {
	t.Helper()
	eventually(t, func() error {
		if len(l.with(texts...)) == 0 {
			return fmt.Errorf("no line has %q", texts)
		}
		return nil
	})
}

// webhooks are the entries of a configuration by their names; none if there is no
// configuration.
func (w *world) webhooks(of schema.GroupVersionResource) map[string]fields {
	w.t.Helper()
	found := map[string]fields{}
	o, err := w.client(of, "").Get(w.ctx(), w.managed, metav1.GetOptions{})
	if err != nil {
		return found
	}
	list, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for _, e := range list {
		entry := e.(fields)
		found[entry["name"].(string)] = entry
	}
	return found
}
