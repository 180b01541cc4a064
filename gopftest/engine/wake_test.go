package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// processorTime returns the CPU time used by this process. Unlike real time, other
// processes do not affect it, and virtual time does not hide it.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestWakesOfABusyObjectAreMerged(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("slow", func(ctx context.Context, _ *gopf.Change[*Example]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		cost := func(wakes int) time.Duration {
			least := time.Duration(1<<63 - 1)
			for range 3 {
				begun := processorTime(t)
				for range wakes {
					x.Wake("default", "x", "slow", "slow/sub", "some-handler")
				}
				least = min(least, processorTime(t)-begun)
			}
			return max(least, 5*time.Millisecond) // less cannot be measured reliably
		}
		few, many := cost(2_000), cost(20_000)
		for range 5 { // other load on the machine disturbs the measurement
			if many > 12*few {
				few, many = max(few, cost(2_000)), min(many, cost(20_000))
			}
		}
		if many > 12*few {
			t.Errorf("20000 wakes cost %v, want at most 12 times the %v of 2000", many, few)
		}
	})
}

func TestWakingASubHandlerCallsIt(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("parent", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.Sub("sub", diary.failing("sub", 1, time.Hour))
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		x.Wake("default", "x", "unknown")
		settle()
		x.Wake("default", "x", "parent/sub")
		settle()
		synctest.Wait()
		if got, want := diary.all(), []string{"sub create a #0", "sub create a #1"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Clients in other namespaces may wake an owner, as often as they like. A handler must not fail
// because of that.
func TestWokenCallsUseUpNoAttempts(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		later := func(name string, retry int) error {
			diary.add("%s #%d", name, retry)
			return gopf.RetryAfter(time.Hour, errors.New("not yet"))
		}
		op := gopf.New(gopf.Identity("x.example.com"))
		x := gopf.For[*Example](op, resource)
		limit := gopf.MaxAttempts(3)
		x.OnCreate("create", func(_ context.Context, ch *gopf.Change[*Example]) error { return later("create", ch.Retry) }, limit)
		x.Timer("timer", 0, func(_ context.Context, tick *gopf.Tick[*Example]) error { return later("timer", tick.Retry) }, limit)
		x.Reconcile("reconcile", func(_ context.Context, r *gopf.Reconciliation[*Example]) error { return later("reconcile", r.Retry) }, limit)
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		for range 10 {
			x.Wake("default", "x")
			settle()
		}
		for _, name := range []string{"create", "timer", "reconcile"} {
			if n := diary.count(name); n != 11 {
				t.Errorf("%s was called %d times before the end of the delay, want 11: %q", name, n, diary.all())
			}
		}
		time.Sleep(10 * time.Hour)
		for _, name := range []string{"create", "timer", "reconcile"} {
			if n, last := diary.count(name), diary.count(name+" #2"); n != 13 || last != 1 {
				t.Errorf("%s was called %d times in all, want 13: %q", name, n, diary.all())
			}
		}
	})
}

// Any client that may create objects may put any owner reference on them.
func TestForgedOwnerReferencesWakeNoOtherOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, resource, "v1/configmaps")
		c.Define(t, gopftest.Kind{Group: "kopf.dev", Version: "v1", Plural: "plans"})
		c.CreateNamespace(t, "tenant")
		var diary calls
		op := gopf.New()
		children := gopf.For[*corev1.ConfigMap](op, "v1/configmaps")
		for _, of := range []string{resource, "kopf.dev/v1/plans"} {
			owners := gopf.For[*Example](op, of)
			owners.OnCreate("wait", func(_ context.Context, ch *gopf.Change[*Example]) error {
				diary.add("%s #%d", ch.Object.Name, ch.Retry)
				return gopf.Wait(time.Hour, "not yet")
			})
			gopf.WakeOwner(children, owners)
		}
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		x := c.Create(t, example("x", "a"))
		settle()
		plan := example("plan", "a")
		plan.SetKind("Plan")
		plan.SetNamespace("")
		plan = c.Create(t, plan)
		settle()
		n := 0
		child := func(namespace string, of *unstructured.Unstructured, uid types.UID) {
			n++
			ref := metav1.OwnerReference{APIVersion: "kopf.dev/v1", Kind: of.GetKind(), Name: of.GetName(), UID: uid, Controller: new(true)}
			made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("child", n), Namespace: namespace, OwnerReferences: []metav1.OwnerReference{ref}}}
			made.APIVersion, made.Kind = "v1", "ConfigMap"
			c.Create(t, made)
			settle()
		}
		child("tenant", plan, "another")
		child("tenant", x, x.GetUID())
		child("default", x, "another")
		if got, want := diary.all(), []string{"x #0", "plan #0"}; !slices.Equal(got, want) {
			t.Errorf("after forged references: got %q, want %q", got, want)
		}
		child("tenant", plan, plan.GetUID())
		child("default", x, x.GetUID())
		if got, want := diary.all(), []string{"x #0", "plan #0", "plan #1", "x #1"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
