package engine_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestTheLifecycleSelectsTheNextHandlers(t *testing.T) {
	fair := []string{"a create x #0", "b create x", "a create x #1", "a create x #2"}
	inOrder := []string{"a create x #0", "a create x #1", "a create x #2", "b create x"}
	cases := map[string]struct {
		lifecycle gopf.Lifecycle // nil means the default
		want      []string
	}{
		"by default, those with fewer attempts go first": {nil, fair},
		"ASAP":      {gopf.ASAP, fair},
		"OneByOne":  {gopf.OneByOne, inOrder},
		"AllAtOnce": {gopf.AllAtOnce, fair},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := gopf.New()
				if test.lifecycle != nil {
					op.Settings.Execution.Lifecycle = test.lifecycle
				}
				x := gopf.For[*Example](op, resource)
				x.OnCreate("a", diary.failing("a", 2, 0))
				x.OnCreate("b", diary.handler("b"))
				gopftest.Start(t, op, c)
				settle()
				c.Create(t, example("x", "x"))
				time.Sleep(10 * time.Second)
				if got := diary.all(); !slices.Equal(got, test.want) {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		})
	}
}

func TestMaxWorkersLimitsConcurrentHandlers(t *testing.T) {
	for limit, want := range map[int]int32{0: 4, 2: 2} {
		bubble(t, func(t *testing.T, c *gopftest.Cluster) {
			var running, most, done atomic.Int32
			op := gopf.New()
			op.Settings.Execution.MaxWorkers = limit
			gopf.For[*Example](op, resource).OnCreate("slow", func(context.Context, *gopf.Change[*Example]) error {
				now := running.Add(1)
				for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
				}
				time.Sleep(10 * time.Second)
				running.Add(-1)
				done.Add(1)
				return nil
			})
			gopftest.Start(t, op, c)
			settle()
			for _, name := range []string{"a", "b", "c", "d"} {
				c.Create(t, example(name, "x"))
			}
			time.Sleep(time.Minute)
			if most.Load() != want || done.Load() != 4 {
				t.Errorf("with %d workers, %d handlers ran at the same time, want %d; %d are done", limit, most.Load(), want, done.Load())
			}
		})
	}
}

func TestSecretsAreStoredAsDigestsUnlessPlainSecretsIsSet(t *testing.T) {
	const value = "aHVudGVyMg==" // an encoded password
	for _, plain := range []bool{false, true} {
		bubble(t, func(t *testing.T, _ *gopftest.Cluster) {
			c := gopftest.NewCluster(t, "v1/secrets")
			op := gopf.New()
			op.Settings.Persistence.PlainSecrets = plain
			op.Resource("v1/secrets").OnCreate("c", func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil })
			gopftest.Start(t, op, c)
			settle()
			secret := example("s", "")
			secret.Object = map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": secret.Object["metadata"], "data": map[string]any{"password": value}}
			c.Create(t, secret)
			time.Sleep(10 * time.Second)
			base := c.Get(t, "v1/secrets", "default", "s").GetAnnotations()[annotated]
			if base == "" || strings.Contains(base, value) != plain {
				t.Errorf("PlainSecrets is %v, and the base is %s", plain, base)
			}
		})
	}
}

func TestNamespacesMatchingMatchesWholeNames(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("c", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("%s", ch.Object.Namespace)
			return nil
		})
		for _, ns := range []string{"app-1", "app-22", "app-x", "my-app-1", "app-1-old"} {
			c.CreateNamespace(t, ns)
			x := example("x", "a")
			x.SetNamespace(ns)
			c.Create(t, x)
		}
		gopftest.Start(t, op, c, gopf.NamespacesMatching(regexp.MustCompile(`app-\d+`)))
		time.Sleep(10 * time.Second)
		got := diary.all()
		if slices.Sort(got); !slices.Equal(got, []string{"app-1", "app-22"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestOldFieldMatchesTheLastHandledState(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).On(gopf.Create|gopf.Update, "f", func(_ context.Context, ch *gopf.Change[*Example]) error {
			old, had := gopf.OldValueAt[string](ch, "spec.field")
			now, has := gopf.ValueAt[string](ch, "spec.field")
			_, number := gopf.OldValueAt[int](ch, "spec.field")
			_, other := gopf.OldValueAt[string](ch, "spec.nothing")
			diary.add("%s %q %v %q %v %v %v", ch.Reason, old, had, now, has, number, other)
			return nil
		})
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		settle()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		settle()
		want := []string{`create "" false "a" true false false`, `update "a" true "b" true false false`}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestManySubHandlersCalledOneByOneLogTheWarningOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		calls := 0
		gopf.For[*Example](op, resource).OnCreate("parent", func(_ context.Context, ch *gopf.Change[*Example]) error {
			calls++
			for i := range 900 {
				ch.Sub(fmt.Sprint(i), func(ctx context.Context, _ *gopf.Change[*Example]) error {
					if calls > 5 { // 900 calls would take long
						<-ctx.Done()
					}
					return nil
				})
			}
			return nil
		})
		var log lines
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Second)
		if got := log.count("So many sub-handlers"); got != 1 || calls < 5 {
			t.Errorf("after %d calls, the advice was given %d times, want 1", calls, got)
		}
	})
}

func TestManySubHandlersLogAWarning(t *testing.T) {
	for count, want := range map[int]int{899: 0, 900: 1} {
		bubble(t, func(t *testing.T, c *gopftest.Cluster) {
			op := gopf.New()
			op.Settings.Execution.Lifecycle = gopf.AllAtOnce
			gopf.For[*Example](op, resource).OnCreate("parent", func(_ context.Context, ch *gopf.Change[*Example]) error {
				for i := range count {
					ch.Sub(fmt.Sprint(i), func(context.Context, *gopf.Change[*Example]) error { return nil })
				}
				return nil
			})
			var log lines
			gopftest.Start(t, op, c, gopf.Log(log.logger()))
			settle()
			c.Create(t, example("x", "a"))
			time.Sleep(10 * time.Second)
			if got := log.count("So many sub-handlers"); got != want {
				t.Errorf("%d sub-handlers: the advice was given %d times, want %d", count, got, want)
			}
		})
	}
}
