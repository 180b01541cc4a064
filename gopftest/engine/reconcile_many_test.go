package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestManyOwnersCauseNoWriteAtARestartAndWhenIdle(t *testing.T) {
	const many = 2000
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		var called atomic.Int64
		declare := func() *gopf.Operator {
			op := owning()
			gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
				called.Add(1)
				name := r.Object.Name
				gopf.Want(r, childMap(name, r.Object.Spec.Field))
				gopf.Want(r, childMap(name+"-more", "a"))
				secret := &corev1.Secret{Data: map[string][]byte{"key": []byte("a")}}
				secret.Name = name
				gopf.Want(r, secret)
				return nil
			}, gopf.Owns[*corev1.ConfigMap](), gopf.Owns[*corev1.Secret]())
			return op
		}
		for i := range many {
			c.Create(t, example(fmt.Sprint("x", i), "a"))
		}
		stop := gopftest.Start(t, declare(), c, gopf.Log(quiet()))
		time.Sleep(10 * time.Minute)
		if n := len(c.List(t, configMaps, "default")) + len(c.List(t, "v1/secrets", "default")); n != 3*many {
			t.Fatalf("there are %d children, want %d", n, 3*many)
		}
		writes := func() int { return len(c.Writes()) }
		for _, when := range []string{"the first hour", "a restart and an hour"} {
			before, calls := writes(), called.Load()
			if when != "the first hour" {
				stop()
				stop = gopftest.Start(t, declare(), c, gopf.Log(quiet()))
			}
			time.Sleep(time.Hour)
			if n := writes() - before; n > 0 {
				t.Errorf("%s caused %d writes, such as %+v", when, n, c.Writes()[before])
			}
			if n, want := called.Load()-calls, map[bool]int64{false: 0, true: many}[when != "the first hour"]; n != want {
				t.Errorf("%s caused %d calls, want %d", when, n, want)
			}
		}
		stop()
	})
}
