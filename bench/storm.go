package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"gopf.dev/gopf/bench/cluster"
	"gopf.dev/gopf/bench/proc"
	"gopf.dev/gopf/bench/proto"
	"gopf.dev/gopf/bench/report"
)

// storms are B1 and B2: all objects are new, then all are updated.
func (b *bench) storms(ctx context.Context, c *cluster.Cluster, name string, objects int, ids ...string) error {
	return b.run(c, name, "gadgets", "create,update", func(p *process) error {
		if _, err := p.quiet(); err != nil {
			return err
		}
		for _, id := range ids {
			begin := func() error { return c.Fresh(ctx, "gadgets", 0, objects) }
			if id == "B2" {
				begin = func() error { return c.Change(ctx, "gadgets", 0, objects, cluster.Updated) }
			}
			if err := b.storm(ctx, c, p, id, name, objects, begin); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
		}
		return nil
	})
}

// storm measures how a program processes many events at the same time.
func (b *bench) storm(ctx context.Context, c *cluster.Cluster, p *process, id, name string, objects int, begin func() error) error {
	if _, err := p.harness.Ask("reset"); err != nil {
		return err
	}
	before, err := p.settled()
	if err != nil {
		return err
	}
	if err := proc.ResetPeak(p.pid()); err != nil {
		return err
	}
	requests, err := c.Requests(ctx)
	if err != nil {
		return err
	}
	stats, err := p.harness.Ask("stats")
	if err != nil {
		return err
	}
	stop, err := b.profile(p, id, name)
	if err != nil {
		return err
	}
	cpu, err := proc.CPU(p.pid())
	if err != nil {
		return err
	}
	server, err := proc.CPU(c.PID())
	if err != nil {
		return err
	}
	began := time.Now()
	if err := begin(); err != nil {
		return err
	}
	if _, err := p.await(10*time.Minute, "handle all objects", func(s proto.Stats) bool { return s.Calls >= objects }); err != nil {
		return err
	}
	// Handlers may be called long before their outcomes are written, above all on a busy
	// machine.
	if err := c.WrittenOnce(ctx, "gadgets", objects, requests, 10*time.Minute); err != nil {
		return err
	}
	last, err := c.Written(ctx)
	if err != nil {
		return err
	}
	if err := stop(); err != nil {
		return err
	}
	end, err := p.quiet()
	if err != nil {
		return err
	}
	serverEnd, err := proc.CPU(c.PID())
	if err != nil {
		return err
	}
	now, err := p.harness.Ask("stats")
	if err != nil {
		return err
	}
	if now.Calls != objects {
		return fmt.Errorf("%d calls for %d objects", now.Calls, objects)
	}
	sent, err := c.Requests(ctx)
	if err != nil {
		return err
	}
	memory, err := p.settled()
	if err != nil {
		return err
	}
	wall := last.Sub(began).Seconds()
	each := float64(objects)
	b.results.Add(report.Row{ID: id, Program: name, Objects: objects, Values: []report.Value{
		{Name: "rate", Is: each / wall, Unit: "objects/s"},
		{Name: "CPU per object", Is: float64((end - cpu).Microseconds()) / 1000 / each, Unit: "ms"},
		{Name: "server CPU per object", Is: float64((serverEnd - server).Microseconds()) / 1000 / each, Unit: "ms"},
		{Name: "writes per object", Is: sent.Since(requests).Writes("gadgets") / each, Unit: "requests"},
		{Name: "settled before", Is: mega(before.RSS), Unit: "MB"},
		{Name: "peak", Is: mega(memory.Peak), Unit: "MB"},
		{Name: "settled", Is: mega(memory.RSS), Unit: "MB"},
		{Name: "allocated per object", Is: float64(now.Allocated-stats.Allocated) / 1024 / each, Unit: "KB"},
		{Name: "allocations per object", Is: float64(now.Mallocs-stats.Mallocs) / each, Unit: "mallocs"},
	}})
	return nil
}

// profile makes the program profile itself, if profiles are requested.
func (b *bench) profile(p *process, id, name string) (stop func() error, err error) {
	if b.profiles == "" || name == kopfName {
		return func() error { return nil }, nil
	}
	path := filepath.Join(b.profiles, id+" "+name)
	if _, err := p.harness.Ask("cpu " + path + ".cpu"); err != nil {
		return nil, err
	}
	return func() error {
		if _, err := p.harness.Ask("cpu"); err != nil {
			return err
		}
		_, err := p.harness.Ask("heap " + path + ".allocs")
		return err
	}, nil
}

// bareStorm makes only the writes of B1.
func (b *bench) bareStorm(ctx context.Context, c *cluster.Cluster, objects int) error {
	if err := c.Fresh(ctx, "gadgets", 0, objects); err != nil {
		return err
	}
	if err := c.Served(ctx, "gadgets", objects); err != nil {
		return err
	}
	server, err := proc.CPU(c.PID())
	if err != nil {
		return err
	}
	return b.run(c, bareName, "gadgets", fmt.Sprintf("patch=%d", objects), func(p *process) error {
		cpu, err := p.quiet()
		if err != nil {
			return err
		}
		if _, err = p.harness.Ask("go"); err != nil {
			return err
		}
		began := time.Now()
		_, err = p.await(10*time.Minute, "write all objects", func(s proto.Stats) bool { return s.Calls >= objects })
		if err != nil {
			return err
		}
		last, err := c.Written(ctx)
		if err != nil {
			return err
		}
		end, err := p.quiet()
		if err != nil {
			return err
		}
		serverEnd, err := proc.CPU(c.PID())
		if err != nil {
			return err
		}
		each := float64(objects)
		b.results.Add(report.Row{ID: "B1", Program: bareName, Objects: objects, Note: "the same writes", Values: []report.Value{
			{Name: "rate", Is: each / last.Sub(began).Seconds(), Unit: "objects/s"},
			{Name: "CPU per object", Is: float64((end - cpu).Microseconds()) / 1000 / each, Unit: "ms"},
			{Name: "server CPU per object", Is: float64((serverEnd - server).Microseconds()) / 1000 / each, Unit: "ms"},
		}})
		return nil
	})
}
