package engine_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/gopftest"
)

// Handlers read a ConfigMap of one namespace for the objects of all tenants, as many do:
// defaults, templates or a catalog. One tenant creates many objects. The requests for the object
// of another tenant do not wait for those of the first.
func TestReadsOfASharedNamespaceAreSharedByTenants(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20)) // limits the running handlers of a namespace
	read := func(ctx context.Context, api client.Client) error {
		for range 6 {
			if _, err := client.Get[*corev1.ConfigMap](ctx, api, "defaults", client.InNamespace("platform")); err != nil {
				return err
			}
		}
		return nil
	}
	for name, declare := range map[string]func(op *gopf.Operator, handled func(*Example)){
		"handlers": func(op *gopf.Operator, handled func(*Example)) {
			gopf.For[*Example](op, resource).OnCreate("create", func(ctx context.Context, ch *gopf.Change[*Example]) error {
				defer handled(ch.Object)
				return read(ctx, ch.API)
			})
		},
		"timers": func(op *gopf.Operator, handled func(*Example)) {
			gopf.For[*Example](op, resource).Timer("tick", time.Hour, func(ctx context.Context, tick *gopf.Tick[*Example]) error {
				defer handled(tick.Object)
				return read(ctx, tick.API)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				c.Define(t, gopftest.Kind{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true})
				for _, ns := range []string{"crowded", "other", "platform"} {
					c.CreateNamespace(t, ns)
				}
				c.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "defaults"}})
				op := gopf.New()
				var mu sync.Mutex
				at := map[string]time.Time{}
				declare(op, func(o *Example) {
					mu.Lock()
					defer mu.Unlock()
					at[o.Namespace] = time.Now()
				})
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				c.Fault(gopftest.Requests("get", "configmaps"), gopftest.Hold(50*time.Millisecond))
				create := func(ns, name string) {
					o := example(name, "a")
					o.SetNamespace(ns)
					c.Create(t, o)
				}
				for i := range 1200 {
					create("crowded", fmt.Sprint("x", i))
				}
				time.Sleep(200 * time.Millisecond) // the handlers have started
				began := time.Now()
				create("other", "x")
				time.Sleep(5 * time.Minute)
				mu.Lock()
				defer mu.Unlock()
				if took := at["other"].Sub(began); took <= 0 || took > 2*time.Second {
					t.Errorf("the object of the other tenant was handled after %v", took)
				}
			})
		})
	}
}
