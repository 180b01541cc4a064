package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"gopf.dev/gopf/bench/cluster"
	"gopf.dev/gopf/bench/proto"
	"gopf.dev/gopf/bench/report"
)

// childResources are the resources of the children.
var childResources = []string{"configmaps", "secrets", "services"}

// The ids of the measurements of children.
const (
	childrenID = "B13"
	restartID  = "B14"
)

// children is B13: all objects are new, and each gets three children. B14 then starts the
// program again.
func (b *bench) children(ctx context.Context, p plan, sizes []int) error {
	if !p.wants(childrenID) && !p.wants(restartID) {
		return nil
	}
	for _, n := range sizes {
		for _, name := range p.operators(b.programs) {
			if name != gopfName && name != statusName && name != typedName {
				continue
			}
			log.Printf("%s with %d objects and their children", name, n)
			err := b.on(ctx, name, n, small, func(c *cluster.Cluster) error {
				var empty time.Duration // the CPU time of a start without objects
				err := b.run(c, name, "gadgets", "children", func(running *process) (err error) {
					if empty, err = running.quiet(); err != nil {
						return err
					}
					return b.storm(ctx, c, running, childrenID, name, n, func() error { return c.Fresh(ctx, "gadgets", 0, n) })
				})
				if err != nil || !p.wants(restartID) {
					return err
				}
				return b.restart(ctx, c, name, n, empty)
			})
			if err != nil {
				return fmt.Errorf("children: %w", err)
			}
		}
	}
	return nil
}

// restart is B14: the objects and their children are as declared. empty is the CPU time of a
// start without objects.
func (b *bench) restart(ctx context.Context, c *cluster.Cluster, name string, n int, empty time.Duration) error {
	before, err := c.Requests(ctx)
	if err != nil {
		return err
	}
	var size float64
	for _, resource := range childResources {
		average, err := c.AverageSize(ctx, resource)
		if err != nil {
			return err
		}
		size += average * float64(n)
	}
	return b.run(c, name, "gadgets", "children", func(p *process) error {
		stop, err := b.profile(p, restartID, name)
		if err != nil {
			return err
		}
		if _, err := p.await(10*time.Minute, "look at all objects", func(s proto.Stats) bool { return s.Calls >= n }); err != nil {
			return err
		}
		cpu, err := p.quiet()
		if err != nil {
			return err
		}
		stats, err := p.harness.Ask("stats")
		if err != nil {
			return err
		}
		if err := stop(); err != nil {
			return err
		}
		memory, err := p.settled()
		if err != nil {
			return err
		}
		after, err := c.Requests(ctx)
		if err != nil {
			return err
		}
		writes := after.Since(before).Writes("gadgets")
		for _, resource := range childResources {
			writes += after.Since(before).Writes(resource)
		}
		b.results.Add(report.Row{ID: restartID, Program: name, Objects: n, Values: []report.Value{
			{Name: "CPU per object", Is: float64((cpu - empty).Microseconds()) / float64(n), Unit: "µs"},
			{Name: "calls per object", Is: float64(stats.Seen) / float64(n), Unit: "calls"},
			{Name: "allocations per object", Is: float64(stats.Mallocs) / float64(n), Unit: "mallocs"},
			{Name: "allocated per object", Is: float64(stats.Allocated) / 1024 / float64(n), Unit: "KB"},
			{Name: "writes", Is: writes, Unit: "requests"},
			{Name: "peak", Is: mega(memory.Peak), Unit: "MB"},
			{Name: "settled", Is: mega(memory.RSS), Unit: "MB"},
			{Name: "JSON of the children", Is: size / (1 << 20), Unit: "MB"},
		}})
		return nil
	})
}
