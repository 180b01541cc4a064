package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const forever = "until 9999-01-01T00:00:00Z"

// setTier changes the label that the operators of these tests select. nil removes it.
func setTier(t *testing.T, c *gopftest.Cluster, tier any) {
	t.Helper()
	setMetadata(t, c, map[string]any{"labels": map[string]any{"tier": tier}})
}

func setMetadata(t *testing.T, c *gopftest.Cluster, metadata map[string]any) {
	t.Helper()
	c.Patch(t, resource, "default", "x", map[string]any{"metadata": metadata})
}

// createSelected creates the object x with the label.
func createSelected(t *testing.T, c *gopftest.Cluster) {
	t.Helper()
	o := example("x", "a")
	o.SetLabels(map[string]string{"tier": "prod"})
	c.Create(t, o)
	pause()
}

// reads returns the number of requests that have read the object x alone: the operator does not
// know whether it still exists.
func reads(c *gopftest.Cluster) int {
	return c.Count(gopftest.Requests("list", "kopfexamples").Where(func(r gopftest.Request) bool { return strings.Contains(r.Path, "metadata.name") }))
}

// relist makes all watches list again: the operator then reads each object that it knows, and
// that is not in the list.
func relist(t *testing.T, c *gopftest.Cluster) (read int) {
	t.Helper()
	before := reads(c)
	down := c.Fault(gopftest.Requests("watch", "kopfexamples").From(1).During(3*time.Second), gopftest.Fail(503))
	defer down.Stop()
	c.CutStreams()
	c.Create(t, example("not-selected", "a"))
	c.Expire()
	time.Sleep(time.Minute)
	synctest.Wait()
	return reads(c) - before
}

func TestAPausedObjectThatLeavesTheSelectionIsReleased(t *testing.T) {
	for name, value := range map[string]string{"paused": "true", "paused until": forever, "its namespace": ""} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				var log lines
				op := gopf.New()
				x := gopf.For[*Example](op, resource).Select("tier=prod")
				x.OnCreate("create", diary.handler("create"))
				x.OnDelete("delete", diary.handler("delete"))
				x.Daemon("run", func(ctx context.Context, _ *gopf.Daemon[*Example]) error {
					<-ctx.Done()
					diary.add("daemon ends: %v", context.Cause(ctx))
					return nil
				})
				gopftest.Start(t, op, c, gopf.Namespaces("def*"), gopf.Log(log.logger()))
				createSelected(t, c)
				if value != "" {
					setMetadata(t, c, map[string]any{"annotations": map[string]any{"gopf.dev/pause": value}})
				} else {
					c.Patch(t, "v1/namespaces", "", "default", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"gopf.dev/pause": forever}}})
				}
				pause()
				if !log.has("The object is paused") {
					t.Fatal("it is not paused")
				}
				setTier(t, c, nil)
				pause()
				if f := get(t, c, "x").GetFinalizers(); len(f) > 0 {
					t.Errorf("after it left, it has the finalizers %q", f)
				}
				if log.has("The pause of the object has ended") {
					t.Error("a pause that goes on is reported as ended")
				}
				c.Delete(t, resource, "default", "x")
				if pause(); exists(t, c, "x") {
					t.Error("it cannot be deleted")
				}
				if got, want := fmt.Sprint(diary.all()), "[create create a daemon ends: "+gopf.ErrPaused.Error()+"]"; got != want {
					t.Errorf("got the calls %s, want %s", got, want)
				}
				if n := relist(t, c); n > 0 {
					t.Errorf("the operator still knows it: %d reads", n)
				}
			})
		})
	}
}

// No event tells that an object is deleted after it left the selection.
func TestAnObjectThatLeftAndVanishedIsForgotten(t *testing.T) {
	cases := map[string]struct {
		start  func(t *testing.T, c *gopftest.Cluster) (stop func()) // before the object leaves
		vanish time.Duration                                         // after it left
		within time.Duration                                         // the operator notices it
	}{
		"while its release is sent": {func(t *testing.T, c *gopftest.Cluster) func() {
			return c.Fault(gopftest.Requests("patch", "kopfexamples").Where(ours).From(1), gopftest.Hold(100*time.Millisecond)).Stop
		}, 50 * time.Millisecond, 500 * time.Millisecond},
		"while its release is refused": {func(t *testing.T, c *gopftest.Cluster) func() {
			return c.Fault(gopftest.Requests("patch", "kopfexamples").Where(ours).From(1), gopftest.Fail(403)).Stop
		}, time.Minute, 10 * time.Minute},
	}
	for name, v := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				op := gopf.New()
				x := gopf.For[*Example](op, resource).Select("tier=prod")
				x.OnDelete("delete", (&calls{}).handler("delete"))
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				createSelected(t, c)
				stop := v.start(t, c)
				setTier(t, c, nil)
				time.Sleep(v.vanish)
				synctest.Wait()
				setMetadata(t, c, map[string]any{"finalizers": nil})
				c.Delete(t, resource, "default", "x")
				if exists(t, c, "x") {
					t.Fatal("it still exists")
				}
				time.Sleep(v.within)
				synctest.Wait()
				sent := len(c.Requests())
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				for _, r := range c.Requests()[sent:] {
					if r.Resource == "kopfexamples" && r.Verb != "watch" {
						t.Fatalf("the operator still handles it: %s %s", r.Verb, r.Path)
					}
				}
				stop()
				if n := relist(t, c); n > 0 {
					t.Errorf("the operator still knows it: %d reads", n)
				}
			})
		})
	}
}

func TestAnObjectThatLeftIsReleasedAlthoughAResponseSaidThatItIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		gopf.For[*Example](op, resource).Select("tier=prod").OnDelete("delete", (&calls{}).handler("delete"))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		createSelected(t, c)
		wrong := c.Fault(gopftest.Requests("patch", "kopfexamples").Where(ours).First(2), gopftest.Fail(404))
		setTier(t, c, nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if f := get(t, c, "x").GetFinalizers(); len(f) > 0 || wrong.Struck() == 0 {
			t.Errorf("finalizers %q after %d wrong responses", f, wrong.Struck())
		}
	})
}

// A daemon that has exited on its own is over for the object, but not for one that returns to the
// selection: the operator does not keep all objects that have ever left.
func TestAnObjectWithAnExitedDaemonIsForgottenWhenItLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).Select("tier=prod").Daemon("run", func(context.Context, *gopf.Daemon[*Example]) error {
			diary.add("run")
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		createSelected(t, c)
		setTier(t, c, nil)
		pause()
		if n := relist(t, c); n > 0 {
			t.Errorf("the operator still knows it: %d reads", n)
		}
		setTier(t, c, "prod")
		if pause(); len(diary.all()) != 2 {
			t.Errorf("%d calls, want 2", len(diary.all()))
		}
	})
}

func TestExplainKnowsThatAPauseDoesNotApplyOutsideOfTheSelection(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		gopf.For[*Example](op, resource).Select("tier=prod").OnCreate("create", (&calls{}).handler("create"))
		for name, tier := range map[string]string{"selected": "prod", "left": "test"} {
			o := example(name, "a")
			o.SetLabels(map[string]string{"tier": tier})
			o.SetAnnotations(map[string]string{"gopf.dev/pause": forever})
			c.Create(t, o)
		}
		for name, want := range map[string]bool{"selected": true, "left": false} {
			if got := explained(t, c, op, name).Pause != nil; got != want {
				t.Errorf("%s: the object is paused: got %t, want %t", name, got, want)
			}
		}
	})
}
