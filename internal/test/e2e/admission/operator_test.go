package admission_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
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
		kit.Eventually(w.t, func() error {
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
	*kit.Operator
	t *testing.T
}

// start runs the operator until it is stopped, at the latest at the end of the
// test.
func (w *world) start(op *gopf.Operator, options ...gopf.RunOption) *running {
	w.t.Helper()
	return &running{t: w.t, Operator: kit.Start(w.t, kit.NewLogbook(w.t), func(ctx context.Context, log *slog.Logger) error {
		return op.Run(ctx, append([]gopf.RunOption{gopf.Cluster(cluster), gopf.Namespaces(w.namespace), gopf.Log(log)}, options...)...)
	})}
}

// run starts the operator, and waits until it is asked. It must not fail.
func (w *world) run(op *gopf.Operator, options ...gopf.RunOption) *running {
	w.t.Helper()
	r := w.start(op, options...)
	w.t.Cleanup(func() {
		if r.Stop(); r.Err != nil {
			w.t.Errorf("the operator has failed: %v", r.Err)
		}
	})
	w.asked(true)
	return r
}

// fails waits for the end of an operator that cannot run, and returns why.
func (r *running) fails() string {
	r.t.Helper()
	if r.Wait() == nil {
		r.t.Fatal("the operator has ended well")
	}
	return r.Err.Error()
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
