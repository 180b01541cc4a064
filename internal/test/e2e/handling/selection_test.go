package handling_test

import (
	"context"
	"testing"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// inShard is an object of a shard.
func inShard(shard string) fields {
	return fields{"metadata": fields{"labels": fields{"shard": shard}}, "spec": fields{"field": "a"}}
}

// shard declares handlers for the objects of a shard.
func shard(d *diary, name string, narrow func(*gopf.Resource[*Example]) *gopf.Resource[*Example]) *gopf.Operator {
	op := newOperator()
	x := narrow(gopf.For[*Example](op, examples).Select("shard=" + name))
	x.OnDelete("delete_fn", func(context.Context, *gopf.Change[*Example]) error { d.Add("%s deletes", name); return nil })
	x.OnEvent("event_fn", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
		if e.Type == "DELETED" {
			d.Add("%s sees the end", name)
		}
		return nil
	})
	x.Daemon("daemon_fn", func(ctx context.Context, _ *gopf.Daemon[*Example]) error {
		d.Add("%s starts", name)
		<-ctx.Done()
		d.Add("%s stops: %v", name, context.Cause(ctx))
		return nil
	})
	return op
}

func TestObjectsThatLeaveTheSelectionAreReleased(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.start(shard(d, "one", func(x *gopf.Resource[*Example]) *gopf.Resource[*Example] { return x }), nil)
	s.Create(examples, "x", inShard("one"))
	d.WaitFor(t, "one starts")
	s.waitFor(examples, "x", hasFinalizers(finalizer))
	s.Patch(examples, "x", inShard("two"))
	d.WaitFor(t, "one stops: "+gopf.ErrUnmatched.Error())
	s.waitFor(examples, "x", hasFinalizers())
	s.Patch(examples, "x", inShard("one"))
	s.waitFor(examples, "x", hasFinalizers(finalizer))
	s.Delete(examples, "x")
	d.WaitFor(t, "one deletes")
	d.WaitFor(t, "one sees the end")
}

func TestObjectsAreHandedOverToTheNextOwner(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	handOver := func(x *gopf.Resource[*Example]) *gopf.Resource[*Example] { return x.HandOver() }
	s.start(shard(d, "one", handOver), nil)
	s.start(shard(d, "two", handOver), nil)
	s.Create(examples, "x", inShard("one"))
	d.WaitFor(t, "one starts")
	s.waitFor(examples, "x", hasFinalizers(finalizer))
	s.Patch(examples, "x", inShard("two"))
	d.WaitFor(t, "one stops: "+gopf.ErrUnmatched.Error())
	d.WaitFor(t, "two starts")
	s.waitFor(examples, "x", hasFinalizers(finalizer))
	s.Delete(examples, "x")
	d.WaitFor(t, "two deletes")
	kit.Await(t, "the object is gone", func() bool { return s.Get(examples, "x") == nil })
}
