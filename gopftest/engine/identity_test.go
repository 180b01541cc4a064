package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// present is the present name of the operators.
const present = "new.example.com"

// renamed is an identity that takes over from an operator without one.
func renamed() gopf.Option {
	return gopf.Identity(present, gopf.FormerlyNamed("", "old.example.com"))
}

// identified declares an operator with handlers for all changes.
func identified(diary *calls, opts ...gopf.Option) *gopf.Operator {
	op := gopf.New(opts...)
	op.Settings.Peering.Standalone = true
	x := gopf.For[*Example](op, resource)
	x.OnCreate("create", diary.handler("create"))
	x.OnUpdate("update", diary.handler("update"))
	x.OnDelete("delete", diary.handler("delete"))
	return op
}

// leftovers returns the traces of other names than the present one on an object.
func leftovers(o *unstructured.Unstructured) (found []string) {
	for key := range o.GetAnnotations() {
		if !strings.HasPrefix(key, present+"/") {
			found = append(found, key)
		}
	}
	for _, f := range o.GetFinalizers() {
		if !strings.HasPrefix(f, present+"/") {
			found = append(found, f)
		}
	}
	slices.Sort(found)
	return found
}

func TestANewIdentityTakesOverWithoutCallsAndWrites(t *testing.T) {
	for name, test := range map[string]struct {
		former  []gopf.Option
		declare func(x *gopf.Resource[*Example]) // declarations that prevent skipping unchanged objects by their bytes
	}{
		"from Kopf's names": {},
		"from another name": {former: []gopf.Option{gopf.Identity("old.example.com")}},
		"decoded":           {declare: func(x *gopf.Resource[*Example]) { x.OnField("f", "status.phase", (&calls{}).handler("f")) }},
		"with event handlers": {declare: func(x *gopf.Resource[*Example]) {
			x.OnEvent("e", func(context.Context, *gopf.WatchEvent[*Example]) error { return nil })
		}},
		"with resume handlers": {declare: func(x *gopf.Resource[*Example]) { x.OnResume("r", (&calls{}).handler("r")) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				var log lines
				start := func(opts ...gopf.Option) (stop func()) {
					op := identified(&diary, opts...)
					if test.declare != nil {
						test.declare(gopf.For[*Example](op, resource))
					}
					stop = gopftest.Start(t, op, c, gopf.Log(log.logger()))
					settle()
					return stop
				}
				stop := start(test.former...)
				c.Create(t, example("x", "a"))
				time.Sleep(time.Minute)
				stop()
				before := get(t, c, "x")
				if len(leftovers(before)) < 3 {
					t.Fatalf("the object has only %q", leftovers(before))
				}
				writes := patches(c)
				stop = start(renamed())
				time.Sleep(time.Hour)
				if n := patches(c) - writes; n != 0 {
					t.Errorf("%d writes at a restart with another name", n)
				}
				c.Patch(t, resource, "default", "x", `{"spec":{"field":"b"}}`)
				time.Sleep(time.Hour)
				stop()
				if n := patches(c) - writes; n != 1 {
					t.Errorf("%d writes for a change, want 1 that also moves the state", n)
				}
				after := get(t, c, "x")
				if left := leftovers(after); len(left) > 0 {
					t.Errorf("left of the former name: %q", left)
				}
				if got, want := slices.Sorted(maps.Keys(after.GetAnnotations())), []string{
					present + "/gopf.bound", present + "/kopf-managed", present + "/last-handled-configuration",
				}; !slices.Equal(got, want) {
					t.Errorf("the annotations are %q", got)
				}
				if got := after.GetFinalizers(); !slices.Equal(got, []string{present + "/finalizer"}) {
					t.Errorf("the finalizers are %q", got)
				}
				writes = patches(c)
				start(gopf.Identity(present)) // the former names are not needed any more
				time.Sleep(time.Hour)
				if n := patches(c) - writes; n != 0 {
					t.Errorf("%d writes at a restart without the former names", n)
				}
				c.Delete(t, resource, "default", "x")
				time.Sleep(time.Hour)
				if got, want := diary.all(), []string{"create create a", "update update b", "delete delete b"}; !slices.Equal(got, want) {
					t.Errorf("calls %q, want %q", got, want)
				}
				if _, there := c.Lookup(t, resource, "default", "x"); there {
					t.Error("the object still exists")
				}
				suspected(t, &log)
				if log.has("Removing a finalizer that") || log.has("without a write of this process") {
					t.Error("the operator takes its own state for that of another operator")
				}
			})
		})
	}
}

// The records, the note and the delay of an unfinished handling count under the new name.
func TestANewIdentityContinuesAHandling(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		start := func(opts ...gopf.Option) (stop func()) {
			op := gopf.New(opts...)
			x := gopf.For[*Example](op, resource)
			x.OnCreate("done", diary.handler("done"))
			x.OnCreate("slow", diary.failing("slow", 2, 2*time.Hour))
			x.OnCreate("parent", func(_ context.Context, ch *gopf.Change[*Example]) error {
				diary.add("parent #%d", ch.Retry)
				ch.Sub("one", diary.handler("one"))
				ch.Sub("two", diary.failing("two", 2, 3*time.Hour))
				return nil
			})
			x.OnUpdate("update", diary.handler("update"))
			x.OnDelete("delete", diary.handler("delete"))
			stop = gopftest.Start(t, op, c, gopf.Log(quiet()))
			settle()
			return stop
		}
		stop := start()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		stop()
		writes, count := patches(c), len(diary.all())
		stop = start(renamed())
		time.Sleep(time.Hour)
		if got := diary.all()[count:]; patches(c) != writes || len(got) > 0 {
			t.Fatalf("%d writes and calls %q at a restart with another name", patches(c)-writes, got)
		}
		time.Sleep(90 * time.Minute) // "slow" is called, and the others wait
		if left := leftovers(get(t, c, "x")); len(left) > 0 {
			t.Errorf("left of the former name during the handling: %q", left)
		}
		stop()
		start(gopf.Identity(present))
		time.Sleep(24 * time.Hour)
		want := []string{"slow create a #1", "parent #2", "two create a #1", "slow create a #2", "parent #3", "two create a #2"}
		if got := diary.all()[count:]; !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
		after := get(t, c, "x")
		if left := leftovers(after); len(left) > 0 || len(after.GetAnnotations()) != 3 {
			t.Errorf("left: %q, annotations %v", left, after.GetAnnotations())
		}
	})
}

// A change that was made during a handling under the former name is not lost.
func TestANewIdentityKnowsWhatHandlersSaw(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		start := func(opts ...gopf.Option) (stop func()) {
			op := gopf.New(opts...)
			x := gopf.For[*Example](op, resource)
			x.On(gopf.Create|gopf.Update, "quick", diary.handler("quick"))
			x.OnCreate("slow", diary.failing("slow", 1, time.Hour))
			stop = gopftest.Start(t, op, c, gopf.Log(quiet()))
			settle()
			return stop
		}
		stop := start()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		stop()
		c.Patch(t, resource, "default", "x", `{"spec":{"field":"b"}}`)
		start(renamed())
		time.Sleep(24 * time.Hour)
		if got, want := diary.all(), []string{"quick create a", "slow create a #0", "slow create b #1", "quick update b"}; !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
		if left := leftovers(get(t, c, "x")); len(left) > 0 {
			t.Errorf("left of the former name: %q", left)
		}
	})
}

func TestAnObjectWithOnlyAFormerFinalizerIsReleasedOnce(t *testing.T) {
	for name, finalizers := range map[string][]string{
		"of Kopf":         {"kopf.zalando.org/KopfFinalizerMarker"},
		"of another name": {"old.example.com/finalizer"},
		"several":         {"old.example.com/finalizer", "kopf.zalando.org/KopfFinalizerMarker"},
		"and ours":        {"old.example.com/finalizer", present + "/finalizer"},
	} {
		for _, while := range []string{"deleted before the start", "deleted afterwards"} {
			t.Run(name+", "+while, func(t *testing.T) {
				bubble(t, func(t *testing.T, c *gopftest.Cluster) {
					var diary calls
					o := example("x", "a")
					o.SetFinalizers(append([]string{"example.com/other"}, finalizers...))
					o.SetAnnotations(map[string]string{annotated: "{\"spec\":{\"field\":\"a\"}}\n"})
					c.Create(t, o)
					if while == "deleted before the start" {
						c.Delete(t, resource, "default", "x")
					}
					op := gopf.New(renamed())
					x := gopf.For[*Example](op, resource)
					x.OnCreate("create", diary.handler("create"))
					x.OnDelete("delete", diary.failing("delete", 1, time.Minute))
					x.OnDelete("quick", diary.handler("quick"))
					gopftest.Start(t, op, c, gopf.Log(quiet()))
					settle()
					if while != "deleted before the start" {
						c.Delete(t, resource, "default", "x")
					}
					time.Sleep(time.Hour)
					if got, want := diary.all(), []string{"delete delete a #0", "quick delete a", "delete delete a #1"}; !slices.Equal(got, want) {
						t.Errorf("calls %q, want %q", got, want)
					}
					if got := get(t, c, "x").GetFinalizers(); !slices.Equal(got, []string{"example.com/other"}) {
						t.Errorf("the finalizers are %q", got)
					}
				})
			})
		}
	}
}

// If no handler needs a finalizer any more, former ones are removed as well.
func TestFormerFinalizersAreRemovedIfNotNeeded(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		stop := gopftest.Start(t, identified(&diary), c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		stop()
		op := gopf.New(renamed())
		gopf.For[*Example](op, resource).OnCreate("create", diary.handler("create"))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		time.Sleep(time.Hour)
		if left := leftovers(get(t, c, "x")); len(left) > 0 || len(get(t, c, "x").GetFinalizers()) > 0 {
			t.Errorf("left: %q, finalizers %q", left, get(t, c, "x").GetFinalizers())
		}
		if got := diary.all(); !slices.Equal(got, []string{"create create a"}) {
			t.Errorf("calls %q", got)
		}
	})
}

// A write to the status alone does not move anything, because that needs another request.
func TestWritesToTheStatusDoNotMoveState(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		stop := gopftest.Start(t, identified(&diary), c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		stop()
		before := get(t, c, "x")
		writes := patches(c)
		op := identified(&diary, renamed())
		gopf.For[*Example](op, resource).OnEvent("seen", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
			if e.Object.Status["seen"] == nil {
				e.SetResult("yes")
			}
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		time.Sleep(time.Hour)
		after := get(t, c, "x")
		if after.Object["status"].(map[string]any)["seen"] != "yes" || patches(c) != writes+1 {
			t.Errorf("%d writes, the status is %v", patches(c)-writes, after.Object["status"])
		}
		if !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) || len(diary.all()) != 1 {
			t.Errorf("the annotations are %v, the calls %q", after.GetAnnotations(), diary.all())
		}
	})
}

func TestOperatorsWithDifferentIdentitiesDoNotDisturbEachOther(t *testing.T) {
	for name, others := range map[string][]gopf.Option{
		"two names":         {gopf.Identity("other.example.com")},
		"one without names": nil,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var one, two calls
				var log lines
				stopOne := gopftest.Start(t, identified(&one, gopf.Identity(present)), c, gopf.Log(log.logger()))
				stopTwo := gopftest.Start(t, identified(&two, others...), c, gopf.Log(log.logger()))
				settle()
				c.Create(t, example("x", "a"))
				time.Sleep(time.Minute)
				want := []string{"create create a"}
				for i := range 10 {
					c.Patch(t, resource, "default", "x", fmt.Sprintf(`{"spec":{"field":"v%d"}}`, i))
					time.Sleep(time.Minute)
					want = append(want, fmt.Sprintf("update update v%d", i))
				}
				x := get(t, c, "x")
				if len(x.GetFinalizers()) != 2 || len(leftovers(x)) < 3 || x.GetAnnotations()[present+"/last-handled-configuration"] == "" {
					t.Errorf("finalizers %q, annotations %q", x.GetFinalizers(), x.GetAnnotations())
				}
				stopOne()
				stopTwo()
				writes := patches(c)
				gopftest.Start(t, identified(&one, gopf.Identity(present)), c, gopf.Log(log.logger()))
				stopTwo = gopftest.Start(t, identified(&two, others...), c, gopf.Log(log.logger()))
				time.Sleep(time.Hour)
				if n := patches(c) - writes; n > 0 {
					t.Errorf("%d writes at a restart", n)
				}
				stopTwo()
				c.Delete(t, resource, "default", "x")
				time.Sleep(time.Hour)
				if _, there := c.Lookup(t, resource, "default", "x"); !there {
					t.Error("the object did not wait for the second operator")
				}
				gopftest.Start(t, identified(&two, others...), c, gopf.Log(log.logger()))
				time.Sleep(time.Hour)
				want = append(want, "delete delete v9")
				for _, diary := range []*calls{&one, &two} {
					if got := diary.all(); !slices.Equal(got, want) {
						t.Errorf("calls %q, want %q", got, want)
					}
				}
				if _, there := c.Lookup(t, resource, "default", "x"); there {
					t.Error("the object still exists")
				}
				suspected(t, &log)
				if log.has("without a write of this process") || log.has("is gone") || log.has("Removing a finalizer that") {
					t.Error("an operator took the other's traces for its own")
				}
			})
		})
	}
}

// The annotations of Kopf can be a name as well. With Kopf's finalizer, this is the way back.
func TestAnIdentityCanGoBackToTheNamesOfKopf(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		stop := gopftest.Start(t, identified(&diary, gopf.Identity(present)), c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		stop()
		op := identified(&diary, gopf.Identity("kopf.zalando.org", gopf.FormerlyNamed(present)))
		op.Settings.Persistence.Finalizer = gopf.DefaultSettings().Persistence.Finalizer
		stop = gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Patch(t, resource, "default", "x", `{"spec":{"field":"b"}}`)
		time.Sleep(time.Minute)
		stop()
		writes := patches(c)
		gopftest.Start(t, identified(&diary), c, gopf.Log(quiet()))
		time.Sleep(time.Hour)
		x := get(t, c, "x")
		if got := slices.Sorted(maps.Keys(x.GetAnnotations())); !slices.Equal(got, []string{bound, annotated}) || patches(c) != writes {
			t.Errorf("annotations %q, %d writes at a restart", got, patches(c)-writes)
		}
		if got := x.GetFinalizers(); !slices.Equal(got, []string{"kopf.zalando.org/KopfFinalizerMarker"}) {
			t.Errorf("finalizers %q", got)
		}
		if got, want := diary.all(), []string{"create create a", "update update b"}; !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
	})
}

// An old operator that still runs under the former name is reported.
func TestAnOperatorWithTheFormerNameIsDetected(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var log lines
		slow := func(took time.Duration, opts ...gopf.Option) *gopf.Operator {
			op := gopf.New(opts...)
			work := func(context.Context, *gopf.Change[*Example]) error { time.Sleep(took); return nil }
			x := gopf.For[*Example](op, resource)
			x.OnCreate("create", work)
			x.OnUpdate("update", work)
			x.OnDelete("delete", work)
			return op
		}
		gopftest.Start(t, slow(time.Second), c, gopf.Log(quiet()))
		gopftest.Start(t, slow(2*time.Second, renamed()), c, gopf.Log(log.logger()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		edit(t, c, 20)
		if !log.has(anotherWriter) {
			t.Error("no warning about the operator with the former name")
		}
	})
}

func TestACopyOfAnObjectWithFormerStateIsHandledAsANewOne(t *testing.T) {
	for name, beside := range map[string]func(x *gopf.Resource[*Example]){
		"by its bytes": func(*gopf.Resource[*Example]) {},
		"decoded":      func(x *gopf.Resource[*Example]) { x.OnField("f", "status.phase", (&calls{}).handler("f")) },
		"a finalizer":  func(x *gopf.Resource[*Example]) { x.OnDelete("d", (&calls{}).handler("d")) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				declare := func(opts ...gopf.Option) *gopf.Operator {
					op := gopf.New(opts...)
					x := gopf.For[*Example](op, resource)
					x.OnCreate("create", func(_ context.Context, ch *gopf.Change[*Example]) error {
						diary.add("%s #%d", ch.Object.Name, ch.Retry)
						if ch.Retry == 0 {
							return gopf.RetryAfter(time.Minute, errors.New("not yet"))
						}
						return nil
					})
					beside(x)
					return op
				}
				stop := gopftest.Start(t, declare(), c, gopf.Log(quiet()))
				settle()
				c.Create(t, example("x", "a"))
				time.Sleep(time.Hour)
				stop()
				copied(t, c)
				gopftest.Start(t, declare(renamed()), c, gopf.Log(quiet()))
				time.Sleep(time.Hour)
				if got, want := diary.all(), []string{"x #0", "x #1", "y #0", "y #1"}; !slices.Equal(got, want) {
					t.Errorf("calls %q, want %q", got, want)
				}
				y := get(t, c, "y")
				if left := leftovers(y); len(left) > 0 || !strings.HasPrefix(y.GetAnnotations()[present+"/gopf.bound"], string(y.GetUID())) {
					t.Errorf("left %q, annotations %q", left, y.GetAnnotations())
				}
			})
		})
	}
}

// Old versions of Kopf stored records in the status, under a key of their own.
func TestRecordsInTheStatusUnderAFormerKeyCount(t *testing.T) {
	for former, key := range map[string]string{"": "kopf", "old.example.com": "old.example.com"} {
		bubble(t, func(t *testing.T, c *gopftest.Cluster) {
			var diary calls
			c.Create(t, example("x", "a"))
			c.PatchStatus(t, resource, "default", "x", map[string]any{"status": map[string]any{key: map[string]any{"progress": map[string]any{
				"done": map[string]any{"started": "2000-01-01T00:00:00.000000", "stopped": "2000-01-01T00:00:00.000000", "purpose": "create", "retries": 1, "success": true, "failure": false},
				"slow": map[string]any{"started": "2000-01-01T00:00:00.000000", "purpose": "create", "retries": 1, "success": false, "failure": false},
			}}}})
			op := gopf.New(gopf.Identity(present, gopf.FormerlyNamed(former)))
			x := gopf.For[*Example](op, resource)
			x.OnCreate("done", diary.handler("done"))
			x.OnCreate("slow", diary.failing("slow", 3, time.Hour))
			gopftest.Start(t, op, c, gopf.Log(quiet()))
			time.Sleep(time.Minute)
			if got := get(t, c, "x"); got.GetAnnotations()[present+"/done"] == "" || strings.Contains(fmt.Sprint(got.Object["status"]), "done") {
				t.Errorf("%q: the records were not moved: %v", former, got.Object)
			}
			time.Sleep(24 * time.Hour)
			if got, want := diary.all(), []string{"slow create a #1", "slow create a #2", "slow create a #3"}; !slices.Equal(got, want) {
				t.Errorf("%q: calls %q, want %q", former, got, want)
			}
			if got := get(t, c, "x"); strings.Contains(fmt.Sprint(got.Object["status"]), key) || len(got.GetAnnotations()) != 3 {
				t.Errorf("%q: %v", former, got.Object)
			}
		})
	}
}

// One crash at any write of a takeover repeats at most the handlers of one write, and loses
// no state.
func TestATakeoverSurvivesCrashes(t *testing.T) {
	var diary *calls
	gopftest.CrashAtEveryWrite(t, gopftest.Life{
		Cluster: func(t testing.TB) *gopftest.Cluster {
			diary = &calls{}
			c := gopftest.NewCluster(t, resource)
			for _, name := range []string{"changed", "deleted", "unfinished"} {
				o := example(name, "a")
				o.SetFinalizers([]string{"kopf.zalando.org/KopfFinalizerMarker"})
				annotations := map[string]string{annotated: "{\"spec\":{\"field\":\"a\"}}\n"}
				if name == "unfinished" {
					annotations = map[string]string{
						"kopf.zalando.org/quick": `{"started":"2000-01-01T00:00:00.000000","stopped":"2000-01-01T00:00:00.000000","purpose":"create","retries":1,"success":true,"failure":false}`,
						"kopf.zalando.org/slow":  `{"started":"2000-01-01T00:00:00.000000","purpose":"create","retries":1,"success":false,"failure":false}`,
					}
				}
				o.SetAnnotations(annotations)
				c.Create(t, o)
			}
			return c
		},
		Operator: func() *gopf.Operator {
			op := gopf.New(renamed())
			x := gopf.For[*Example](op, resource)
			record := func(id string, times int) gopf.ChangeFunc[*Example] {
				return func(_ context.Context, ch *gopf.Change[*Example]) error {
					diary.add("%s %s %s #%d", ch.Object.Name, id, ch.Reason, ch.Retry)
					if ch.Retry < times {
						return gopf.RetryAfter(time.Minute, errors.New("not yet"))
					}
					return nil
				}
			}
			x.On(gopf.Create|gopf.Update|gopf.Delete, "quick", record("quick", 0))
			x.On(gopf.Create|gopf.Update|gopf.Delete, "slow", record("slow", 2))
			return op
		},
		Live: func(t testing.TB, c *gopftest.Cluster) {
			time.Sleep(time.Hour)
			c.Patch(t, resource, "default", "changed", `{"spec":{"field":"b"}}`)
			c.Delete(t, resource, "default", "deleted")
			time.Sleep(time.Hour)
			got := diary.all()
			slices.Sort(got)
			want := []string{
				"changed quick update #0", "changed slow update #0", "changed slow update #1", "changed slow update #2",
				"deleted quick delete #0", "deleted slow delete #0", "deleted slow delete #1", "deleted slow delete #2",
				"unfinished slow create #1", "unfinished slow create #2",
			}
			if repeated := len(got) - len(want); repeated > 2 || !slices.Equal(slices.Compact(slices.Clone(got)), want) {
				t.Errorf("calls %q, want %q", got, want)
			}
			for _, name := range []string{"changed", "unfinished"} {
				o := c.Get(t, resource, "default", name)
				if left := leftovers(o); len(left) > 0 || len(o.GetAnnotations()) != 3 || len(o.GetFinalizers()) != 1 {
					t.Errorf("%s: left %q, annotations %v, finalizers %q", name, left, o.GetAnnotations(), o.GetFinalizers())
				}
			}
			if _, there := c.Lookup(t, resource, "default", "deleted"); there {
				t.Error("the deleted object still exists")
			}
		},
	})
}
