package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// peak counts something that is kept, and the most that was kept at the same time.
type peak struct{ now, most atomic.Int64 }

func (p *peak) add(n int) {
	if now := p.now.Add(int64(n)); n > 0 {
		for most := p.most.Load(); now > most && !p.most.CompareAndSwap(most, now); most = p.most.Load() {
		}
	}
}

// The number of children and sub-handlers may come from a tenant: tiny objects must not fill
// the memory.
func TestManyDeclarationsOfTinyObjectsWaitForEachOther(t *testing.T) {
	const objects, declared = 60, 1_000
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20)) // of the operator
	for name, declare := range map[string]func(op *gopf.Operator, kept *peak){
		"children": func(op *gopf.Operator, kept *peak) {
			gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
				n := 0
				for i := range declared {
					child := gopf.Want(r, childMap(fmt.Sprint(r.Object.Name, "-", i), "a"))
					if !strings.Contains(child.Message, "no memory") {
						kept.add(1)
						n++
					}
				}
				defer kept.add(-n)
				time.Sleep(time.Second)
				return errors.New("nothing is applied")
			}, gopf.Owns[*corev1.ConfigMap]())
		},
		"sub-handlers": func(op *gopf.Operator, kept *peak) {
			gopf.For[*Example](op, resource).OnCreate("subs", func(_ context.Context, c *gopf.Change[*Example]) error {
				n := 0
				for i := range declared {
					c.Sub(fmt.Sprint("sub-", i), func(context.Context, *gopf.Change[*Example]) error { return nil })
					if i >= 100 { // the first ones are not limited
						kept.add(1)
						n++
					}
				}
				defer kept.add(-n)
				time.Sleep(time.Second)
				return gopf.Permanent(errors.New("none is called"))
			})
		},
	} {
		owners(t, func(t *testing.T, c *gopftest.Cluster) {
			op, kept := owning(), &peak{}
			declare(op, kept)
			gopftest.Start(t, op, c, gopf.Log(quiet()))
			for i := range objects {
				c.Create(t, example(fmt.Sprint("x-", i), "a"))
			}
			time.Sleep(30 * time.Second)
			if most := kept.most.Load(); most == 0 || most > objects*declared/2 {
				t.Errorf("%d of %d %s were kept at the same time", most, objects*declared, name)
			}
			if left := kept.now.Load(); left > objects*declared/2 {
				t.Errorf("%d %s are kept at the end", left, name)
			}
		})
	}
}
