package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// sharding declares handlers of all kinds for the objects of one shard.
func sharding(diary *calls, shard string, handOver bool) (*gopf.Operator, *gopf.IndexOf[string, string]) {
	op := gopf.New()
	x := gopf.For[*Example](op, resource).Select("shard=" + shard)
	if handOver {
		x = x.HandOver()
	}
	on := func(name string) gopf.ChangeFunc[*Example] {
		return func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("%s %s %s", shard, name, ch.Object.Spec.Field)
			return nil
		}
	}
	x.OnCreate("c", on("create"))
	x.OnUpdate("u", on("update"))
	x.OnDelete("d", on("delete"))
	x.OnEvent("e", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
		if e.Type == "DELETED" {
			diary.add("%s DELETED", shard)
		}
		return nil
	})
	x.Daemon("b", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
		diary.add("%s daemon starts", shard)
		<-ctx.Done()
		time.Sleep(2 * time.Second) // the object must wait for it
		diary.add("%s daemon ends: %v", shard, context.Cause(ctx))
		return nil
	})
	return op, gopf.Index(x, "i", func(_ context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
		return map[string]string{s.Object.Name: s.Object.Spec.Field}, nil
	})
}

func setShard(t *testing.T, c *gopftest.Cluster, name string, shard any) {
	t.Helper()
	c.Patch(t, resource, "default", name, map[string]any{"metadata": map[string]any{"labels": map[string]any{"shard": shard}}})
}

func sharded(name, shard string) gopf.Unstructured {
	x := example(name, "a")
	x.SetLabels(map[string]string{"shard": shard})
	return x
}

func pause() {
	time.Sleep(10 * time.Second)
	synctest.Wait()
}

func TestAnObjectThatLeavesTheSelectionIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op, index := sharding(&diary, "1", false)
		gopftest.Start(t, op, c)
		c.Create(t, sharded("x", "1"))
		pause()
		if f := get(t, c, "x").GetFinalizers(); len(f) != 1 || index.Len() != 1 {
			t.Fatalf("finalizers %q, %d objects in the index", f, index.Len())
		}
		setShard(t, c, "x", nil)
		pause()
		want := []string{"1 create a", "1 daemon starts", "1 daemon ends: " + gopf.ErrUnmatched.Error()}
		if f := get(t, c, "x").GetFinalizers(); len(f) != 0 || index.Len() != 0 || !sameLines(diary.all(), want) {
			t.Errorf("finalizers %q, %d objects in the index, calls %q", f, index.Len(), diary.all())
		}
		changeField(t, c, "x", "b") // not seen
		pause()
		setShard(t, c, "x", "1")
		pause()
		c.Delete(t, resource, "default", "x")
		pause()
		want = append(want, "1 update b", "1 daemon starts", "1 daemon ends: "+gopf.ErrDeleted.Error(), "1 delete b", "1 DELETED")
		if !sameLines(diary.all(), want) || exists(t, c, "x") {
			t.Errorf("calls %q, want %q", diary.all(), want)
		}
	})
}

// sameLines compares lines without their order: daemons run beside the handlers.
func sameLines(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func TestAnObjectThatLeftDuringAnOutageOfTheWatchIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op, _ := sharding(&diary, "1", false)
		gopftest.Start(t, op, c)
		c.Create(t, sharded("x", "1"))
		pause()
		c.Fault(gopftest.Requests("watch", "kopfexamples").From(1).During(3*time.Second), gopftest.Fail(503))
		c.CutStreams()
		setShard(t, c, "x", "2")
		c.Expire()
		pause()
		if f := get(t, c, "x").GetFinalizers(); len(f) != 0 || !slices.Contains(diary.all(), "1 daemon ends: "+gopf.ErrUnmatched.Error()) {
			t.Errorf("finalizers %q, calls %q", f, diary.all())
		}
	})
}

func TestHandOverKeepsTheFinalizerForTheNextOwner(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		one, first := sharding(&diary, "1", true)
		two, second := sharding(&diary, "2", true)
		var log lines
		gopftest.Start(t, one, c, gopf.Log(log.logger()))
		gopftest.Start(t, two, c, gopf.Log(log.logger()))
		c.Create(t, sharded("x", "1"))
		pause()
		before := patches(c)
		setShard(t, c, "x", "2")
		pause()
		if first.Len() != 0 || second.Len() != 1 {
			t.Errorf("the indices have %d and %d objects", first.Len(), second.Len())
		}
		if f := get(t, c, "x").GetFinalizers(); len(f) != 1 {
			t.Errorf("finalizers %q", f)
		}
		if log.has("finalizer of the operator is gone") || patches(c) > before+1 { // the new labels are a change
			t.Errorf("%d writes for the move", patches(c)-before)
		}
		setShard(t, c, "x", "3") // of no replica
		pause()
		c.Delete(t, resource, "default", "x")
		pause()
		if !exists(t, c, "x") || slices.Contains(diary.all(), "2 delete a") {
			t.Fatalf("an object without an owner is deleted; calls %q", diary.all())
		}
		setShard(t, c, "x", "1")
		pause()
		if exists(t, c, "x") || !slices.Contains(diary.all(), "1 delete a") {
			t.Errorf("calls %q", diary.all())
		}
	})
}

func TestAHandlerThatMovesItsObjectKeepsTheFinalizerWithHandOver(t *testing.T) {
	for _, handOver := range []bool{false, true} {
		bubble(t, func(t *testing.T, c *gopftest.Cluster) {
			op := gopf.New()
			x := gopf.For[*Example](op, resource).Select("shard=1")
			if handOver {
				x = x.HandOver()
			}
			x.OnCreate("c", func(_ context.Context, ch *gopf.Change[*Example]) error { ch.Patch.Label("shard", "2"); return nil })
			x.OnDelete("d", func(context.Context, *gopf.Change[*Example]) error { return nil })
			gopftest.Start(t, op, c)
			c.Create(t, sharded("x", "1"))
			pause()
			if f := get(t, c, "x").GetFinalizers(); (len(f) == 1) != handOver {
				t.Errorf("handed over: %v, finalizers %q", handOver, f)
			}
		})
	}
}

func TestAResolvingReadIsRetried(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op, _ := sharding(&diary, "1", false)
		gopftest.Start(t, op, c)
		c.Create(t, sharded("x", "1"))
		pause()
		c.Fault(gopftest.Requests("list", "kopfexamples").First(3), gopftest.Fail(403))
		setShard(t, c, "x", nil)
		time.Sleep(5 * time.Minute)
		if f := get(t, c, "x").GetFinalizers(); len(f) != 0 || strings.Contains(strings.Join(diary.all(), " "), "DELETED") {
			t.Errorf("finalizers %q, calls %q", f, diary.all())
		}
	})
}

func exists(t *testing.T, c *gopftest.Cluster, name string) bool {
	t.Helper()
	_, exists := c.Lookup(t, resource, "default", name)
	return exists
}
