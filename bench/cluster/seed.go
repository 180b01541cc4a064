package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/bench/widget"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// writers is the number of parallel writes to the database.
const writers = 32

func key(plural, name string) string {
	return "/registry/" + widget.GroupVersion.Group + "/" + plural + "/default/" + name
}

// stored returns an object as stored in the database.
func (c *Cluster) stored(ctx context.Context, plural, name string) ([]byte, error) {
	found, err := c.etcd.Get(ctx, key(plural, name))
	if err != nil {
		return nil, err
	}
	if len(found.Kvs) != 1 {
		return nil, fmt.Errorf("%s %s is not in the database", plural, name)
	}
	return found.Kvs[0].Value, nil
}

// Fresh writes new objects with the numbers from … to into the database.
func (c *Cluster) Fresh(ctx context.Context, plural string, from, to int) error {
	return c.put(ctx, plural, c.mould.Fresh, from, to)
}

// Handled writes objects into the database as operators leave them.
func (c *Cluster) Handled(ctx context.Context, plural string, from, to int) error {
	return c.put(ctx, plural, c.mould.Handled, from, to)
}

func (c *Cluster) put(ctx context.Context, plural string, mould []byte, from, to int) error {
	return parallel(to-from, func(i int) error {
		raw, err := c.mould.cast(mould, plural, from+i)
		if err != nil {
			return err
		}
		_, err = c.etcd.Put(ctx, key(plural, Name(from+i)), string(raw))
		return err
	})
}

// Change changes objects in the database.
func (c *Cluster) Change(ctx context.Context, plural string, from, to int, change func([]byte) []byte) error {
	return parallel(to-from, func(i int) error {
		name := Name(from + i)
		for {
			found, err := c.etcd.Get(ctx, key(plural, name))
			if err != nil || len(found.Kvs) == 0 {
				return fmt.Errorf("read %s %s: %w", plural, name, err)
			}
			was := found.Kvs[0]
			done, err := c.etcd.Txn(ctx).
				If(clientv3.Compare(clientv3.ModRevision(key(plural, name)), "=", was.ModRevision)).
				Then(clientv3.OpPut(key(plural, name), string(change(was.Value)))).Commit()
			if err != nil || done.Succeeded {
				return err
			}
		}
	})
}

// Count returns the number of objects.
func (c *Cluster) Count(ctx context.Context, plural string) (int64, error) {
	found, err := c.etcd.Get(ctx, key(plural, ""), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return found.Count, nil
}

// Served waits until the cache of the API server has all objects. Otherwise the start of the
// API server would be part of the measurement.
func (c *Cluster) Served(ctx context.Context, plural string, want int) error {
	for range 300 {
		// It may reject requests while it starts.
		if seen, err := c.watched(ctx, plural); err == nil && seen >= want {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("the API server does not serve %d %s", want, plural)
}

// watched returns the number of initial objects of a watch.
func (c *Cluster) watched(ctx context.Context, plural string) (seen int, err error) {
	w, err := c.api.Watch(ctx, Info(plural), "", kube.WatchOptions{SendInitialEvents: true})
	if err != nil {
		return 0, err
	}
	defer w.Close()
	for {
		e, err := w.Next()
		if err != nil || e.InitialEnd {
			return seen, err
		}
		seen++
	}
}

func ignore(*object.Body) error { return nil }

// parallel calls fn with the numbers below n, and returns the first error.
func parallel(n int, fn func(int) error) error {
	numbers := make(chan int)
	errs := make(chan error, writers)
	var wait sync.WaitGroup
	for range writers {
		wait.Go(func() {
			for i := range numbers {
				if err := fn(i); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wait.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// Stamp updates an object, with the current time as its stamp.
func (c *Cluster) Stamp(ctx context.Context, plural, name string, size int64) error {
	patch := fmt.Sprintf(`{"spec":{"stamp":%d,"size":%d}}`, time.Now().UnixNano(), size)
	target := kube.Target{Info: Info(plural), Namespace: "default", Name: name}
	_, err := c.api.Patch(ctx, target, types.MergePatchType, []byte(patch))
	return err
}

// Written waits until there are no writes for a while, and returns the time of the last
// write, within a few hundredths of a second. It ignores single writes of the control plane.
func (c *Cluster) Written(ctx context.Context) (last time.Time, err error) {
	const poll, patience = 50 * time.Millisecond, 1500 * time.Millisecond
	var revision, before int64
	for last = time.Now(); time.Since(last) < patience; time.Sleep(poll) {
		now, err := c.etcd.Get(ctx, "nothing") // all answers tell the revision
		if err != nil {
			return last, err
		}
		added := now.Header.Revision - revision
		if added > 1 || added == 1 && before > 0 {
			last = time.Now()
		}
		revision, before = now.Header.Revision, added
	}
	return last, nil
}

// Labelled writes new objects with another label into the database.
func (c *Cluster) Labelled(ctx context.Context, plural string, from, to int) error {
	mould := bytes.Replace(c.mould.Fresh, []byte(`"app":"bench"`), []byte(`"app":"bench","daemon":"yes"`), 1)
	return c.put(ctx, plural, mould, from, to)
}

// CreateStamped creates an object through the API, with the current time as its stamp.
func (c *Cluster) CreateStamped(ctx context.Context, plural string, number int) error {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": widget.GroupVersion.String(), "kind": widget.Kinds[plural],
		"metadata": map[string]any{"name": Name(number), "namespace": "default"},
		"spec":     widget.Spec{Group: "new", Payload: widget.Payload(c.mould.Entries, uint64(number)), Size: 1, Stamp: time.Now().UnixNano()},
	})
	if err != nil {
		return err
	}
	_, err = c.api.Create(ctx, kube.Target{Info: Info(plural), Namespace: "default"}, raw)
	return err
}
