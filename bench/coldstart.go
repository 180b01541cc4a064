package main

import (
	"context"
	"fmt"
	"time"

	"gopf.dev/gopf/bench/cluster"
	"gopf.dev/gopf/bench/proc"
	"gopf.dev/gopf/bench/proto"
	"gopf.dev/gopf/bench/report"
)

// start is the cost of a cold start.
type start struct {
	ready  time.Duration // from the start of the process until the last object was looked at
	cpu    time.Duration
	memory proc.Memory
	calls  int
	writes float64
}

// coldStart starts a program on the given number of handled objects, plus a new one that
// comes last. The handling of the new one is not counted.
func (b *bench) coldStart(ctx context.Context, c *cluster.Cluster, name, resource, does string, objects int, then func(*process) error) (s start, err error) {
	if err := c.Fresh(ctx, resource, sentinel, sentinel+1); err != nil {
		return s, err
	}
	before, err := c.Requests(ctx)
	if err != nil {
		return s, err
	}
	err = b.run(c, name, resource, does, func(p *process) error {
		profiled := func() error { return nil }
		if objects > 0 {
			if profiled, err = b.profile(p, "B3", name); err != nil {
				return err
			}
		}
		var counts proto.Stats
		counts, err = p.await(5*time.Minute, "be ready", func(s proto.Stats) bool {
			return s.Calls >= 1 && (s.Seen == 0 || s.Seen > objects)
		})
		if err != nil {
			return err
		}
		s.ready = time.Unix(0, max(counts.First, counts.LastSeen)).Sub(p.began)
		if s.cpu, err = p.quiet(); err != nil {
			return err
		}
		if err := profiled(); err != nil {
			return err
		}
		if counts, err = p.harness.Ask("counts"); err != nil {
			return err
		}
		s.calls = counts.Calls - 1
		after, err := c.Requests(ctx)
		if err != nil {
			return err
		}
		s.writes = after.Since(before).Writes(resource) - sentinelWrites(name)
		if s.memory, err = p.settled(); err != nil || then == nil {
			return err
		}
		return then(p)
	})
	return s, err
}

// sentinelWrites returns the number of writes for the new object.
func sentinelWrites(name string) float64 {
	if name == gopfName || name == kopfName { // the result and the last-handled configuration
		return 2
	}
	return 1
}

// cold is B3: the cost of a cold start, minus that of a start without objects.
func (b *bench) cold(ctx context.Context, c *cluster.Cluster, name string, objects int, then func(*process) error) error {
	empty, err := b.coldStart(ctx, c, name, "gears", "create,update", 0, nil)
	if err != nil {
		return err
	}
	full, err := b.coldStart(ctx, c, name, "widgets", "create,update", objects, then)
	if err != nil {
		return err
	}
	b.results.Add(report.Row{ID: "B3", Program: name, Objects: objects, Values: []report.Value{
		{Name: "ready", Is: full.ready.Seconds(), Unit: "s"},
		{Name: "ready without objects", Is: empty.ready.Seconds(), Unit: "s"},
		{Name: "CPU per object", Is: float64((full.cpu - empty.cpu).Microseconds()) / float64(objects), Unit: "µs"},
		{Name: "handler calls", Is: float64(full.calls), Unit: "calls"},
		{Name: "writes", Is: full.writes, Unit: "requests"},
		{Name: "peak", Is: mega(full.memory.Peak), Unit: "MB"},
		{Name: "settled", Is: mega(full.memory.RSS), Unit: "MB"},
		{Name: "settled without objects", Is: mega(empty.memory.RSS), Unit: "MB"},
		{Name: "memory per object", Is: float64(full.memory.RSS-empty.memory.RSS) / 1024 / float64(objects), Unit: "KB"},
	}})
	return nil
}

// bareList measures the baseline of B3.
func (b *bench) bareList(c *cluster.Cluster, objects int) error {
	return b.run(c, bareName, "widgets", "list", func(p *process) error {
		s, err := p.await(5*time.Minute, "list", func(s proto.Stats) bool { return s.Calls > 0 })
		if err != nil {
			return err
		}
		if s.Seen < objects {
			return fmt.Errorf("only %d objects were listed", s.Seen)
		}
		cpu, err := p.quiet()
		if err != nil {
			return err
		}
		b.results.Add(report.Row{ID: "B3", Program: bareName, Objects: objects, Note: "paged list", Values: []report.Value{
			{Name: "ready", Is: time.Unix(0, s.First).Sub(p.began).Seconds(), Unit: "s"},
			{Name: "CPU per object", Is: float64(cpu.Microseconds()) / float64(objects), Unit: "µs"},
		}})
		return nil
	})
}

// memory measures the memory for 20,000 objects with and without an index.
func (b *bench) memory(ctx context.Context, c *cluster.Cluster, objects int) error {
	for note, does := range map[string]string{"": "create,update", "with an index": "create,update,index"} {
		// The index contains all objects, as the cache of controller-runtime does.
		s, err := b.coldStart(ctx, c, gopfName, "widgets", does, objects, nil)
		if err != nil {
			return err
		}
		b.results.Add(report.Row{ID: "M", Program: gopfName, Objects: objects, Note: note, Values: []report.Value{
			{Name: "settled", Is: mega(s.memory.RSS), Unit: "MB"},
			{Name: "peak", Is: mega(s.memory.Peak), Unit: "MB"},
			{Name: "ready", Is: s.ready.Seconds(), Unit: "s"},
			{Name: "CPU", Is: s.cpu.Seconds(), Unit: "s"},
		}})
	}
	return nil
}

func mega(bytes int64) float64 { return float64(bytes) / (1 << 20) }
