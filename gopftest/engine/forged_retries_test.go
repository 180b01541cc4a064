package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// A tenant forges the number of attempts in the record of a handler that fails. The delay
// between two attempts grows with this number.
func TestAForgedNumberOfAttemptsDoesNotRemoveTheDelays(t *testing.T) {
	const many = 200
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "settings")
	for number, retries := range map[string]string{"negative": "-1000000000000", "the lowest": "-9223372036854775808", "the highest": "9223372036854775807"} {
		for name, declare := range map[string]func(x *gopf.Resource[*Example], fail func() error){
			"a change handler": func(x *gopf.Resource[*Example], fail func() error) {
				x.On(gopf.Create, "work", func(context.Context, *gopf.Change[*Example]) error { return fail() })
			},
			"a reconcile handler": func(x *gopf.Resource[*Example], fail func() error) {
				x.Reconcile("work", func(context.Context, *gopf.Reconciliation[*Example]) error { return fail() }, gopf.Owns[*corev1.ConfigMap]())
			},
		} {
			t.Run(name+", "+number, func(t *testing.T) {
				owners(t, func(t *testing.T, c *gopftest.Cluster) {
					op := owning()
					var calls atomic.Int64
					declare(gopf.For[*Example](op, resource), func() error {
						if calls.Add(1) > many {
							return nil // otherwise, the test would not end
						}
						return missing
					})
					gopftest.Start(t, op, c, gopf.Log(quiet()))
					settle()
					forged := withItems("x", "a")
					forged.SetAnnotations(map[string]string{"examples.kopf.dev/work": `{"started":"2026-01-01T00:00:00","retries":` + retries + `}`})
					c.Create(t, forged)
					time.Sleep(time.Minute)
					if n := calls.Load(); n < 1 || n > 20 {
						t.Errorf("%d calls within a minute", n)
					}
				})
			})
		}
	}
}
