package gopf_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
)

func TestInvalidReconcileHandlersAreDeclarationErrors(t *testing.T) {
	fn := func(context.Context, *gopf.Reconciliation[gopf.Unstructured]) error { return nil }
	named := gopf.Identity("examples.kopf.dev")
	for name, c := range map[string]struct {
		declare func() *gopf.Operator
		want    string
	}{
		"without an identity": {func() *gopf.Operator {
			op := gopf.New()
			op.Resource("kopfexamples").Reconcile("children", fn, gopf.Owns[*corev1.Secret]())
			return op
		}, "gopf.Identity"},
		"without a function": {func() *gopf.Operator {
			op := gopf.New(named)
			op.Resource("kopfexamples").Reconcile("children", nil)
			return op
		}, "has no function"},
		"unknown type": {func() *gopf.Operator {
			op := gopf.New(named)
			op.Resource("kopfexamples").Reconcile("children", fn, gopf.Owns[gopf.Unstructured]())
			return op
		}, "OfResource"},
		"a duration without its unit": {func() *gopf.Operator {
			op := gopf.New(named)
			op.Resource("kopfexamples").Reconcile("children", fn, gopf.Every(30))
			return op
		}, "add the unit"},
		"the id of a change handler": {func() *gopf.Operator {
			op := gopf.New(named)
			op.Resource("kopfexamples").OnCreate("children", func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil })
			op.Resource("kopfexamples").Reconcile("children", fn)
			return op
		}, "duplicate handler"},
		"the function of Watches takes another type": {func() *gopf.Operator {
			op := gopf.New(named)
			op.Resource("kopfexamples").Reconcile("children", fn, gopf.Watches[*corev1.Secret](func(*corev1.Pod) []types.NamespacedName { return nil }))
			return op
		}, "takes *v1.Pod, but the handler is for *unstructured.Unstructured"},
		"Watches of an unknown type": {func() *gopf.Operator {
			op := gopf.New(named)
			op.Resource("kopfexamples").Reconcile("children", fn, gopf.Watches[gopf.Unstructured](func(gopf.Unstructured) []types.NamespacedName { return nil }))
			return op
		}, "RegisterType"},
		"Watches without a function": {func() *gopf.Operator {
			op := gopf.New(named)
			op.Resource("kopfexamples").Reconcile("children", fn, gopf.Watches[*corev1.Secret]((func(gopf.Unstructured) []types.NamespacedName)(nil)))
			return op
		}, "has no function"},
		"a reserved id": {func() *gopf.Operator {
			op := gopf.New(named)
			op.Resource("kopfexamples").Reconcile("gopf.children.x", fn)
			return op
		}, "reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.declare().Err()
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "declarations_reconcile_test.go:") {
				t.Errorf("got %v, want %q with its file and line", err, c.want)
			}
		})
	}
	op := gopf.New(named)
	op.Resource("kopfexamples").Reconcile("children", fn, gopf.Owns[*corev1.Secret](), gopf.MaxAttempts(3), gopf.Every(time.Hour))
	if err := op.Err(); err != nil {
		t.Errorf("a valid declaration: %v", err)
	}
}
