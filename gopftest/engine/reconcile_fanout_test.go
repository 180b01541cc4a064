package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/gopftest"
)

// Many objects refer to the same two objects, which change while the handlers of earlier changes
// run, and before a pause. Each handler must have seen the last state of both.
func TestManyObjectsSeeTheLastStateOfTheObjectsThatTheyReferTo(t *testing.T) {
	const objects = 100
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var mu sync.Mutex
		seen := map[string]string{}
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(ctx context.Context, r *gopf.Reconciliation[*Example]) error {
			text := ""
			for _, item := range r.Object.Spec.Items {
				from, err := client.Get[*corev1.ConfigMap](ctx, r.API, item)
				if apierrors.IsNotFound(err) {
					continue
				}
				if err != nil {
					return err
				}
				text += item + "=" + from.Data["key"] + " "
			}
			time.Sleep(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			seen[r.Object.Name] = text
			return nil
		}, gopf.Watches[*corev1.ConfigMap](func(x *Example) (all []types.NamespacedName) {
			for _, item := range x.Spec.Items {
				all = append(all, types.NamespacedName{Name: item})
			}
			return all
		}))
		for _, name := range []string{"one", "two"} {
			c.Create(t, foreignMap(name, "0"))
		}
		for i := range objects {
			c.Create(t, withItems(fmt.Sprint("x-", i), "none", "one", "two"))
		}
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		check := func(when, want string) {
			t.Helper()
			time.Sleep(time.Minute)
			settle()
			mu.Lock()
			defer mu.Unlock()
			wrong := 0
			for i := range objects {
				if seen[fmt.Sprint("x-", i)] != want {
					wrong++
				}
			}
			if wrong > 0 {
				t.Errorf("%s: %d objects have not seen %q; the first has seen %q", when, wrong, want, seen["x-0"])
			}
		}
		change := func(name, value string) {
			c.Patch(t, configMaps, "default", name, map[string]any{"data": map[string]any{"key": value}})
		}
		check("after the start", "one=0 two=0 ")
		for i := range 20 {
			change("one", fmt.Sprint(i))
			change("two", fmt.Sprint("b", i))
			time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		}
		check("after many changes", "one=19 two=b19 ")
		change("two", "c")
		c.Delete(t, configMaps, "default", "one")
		check("after a deletion", "two=c ")
		c.CutStreams()
		c.Create(t, foreignMap("one", "d"))
		c.Expire()
		change("two", "d")
		check("after a lost connection", "one=d two=d ")
		change("one", "e")
		synctest.Wait() // the objects are woken, and the first handlers run
		op.Pause("for a test")
		time.Sleep(10 * time.Minute)
		op.Unpause()
		check("after a pause", "one=e two=d ")
		paused := func(do func()) {
			op.Pause("for a test")
			time.Sleep(time.Minute)
			do()
			time.Sleep(time.Minute)
			op.Unpause()
		}
		paused(func() { change("two", "f") })
		check("after a change during a pause", "one=e two=f ")
		paused(func() { c.Delete(t, configMaps, "default", "one") })
		check("after a deletion during a pause", "two=f ")
		paused(func() { c.Create(t, foreignMap("one", "g")) })
		check("after a creation during a pause", "one=g two=f ")
	})
}
