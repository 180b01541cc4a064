package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"gopf.dev/gopf/bench/cluster"
	"gopf.dev/gopf/bench/proc"
	"gopf.dev/gopf/bench/proto"
	"gopf.dev/gopf/bench/report"
)

// idle is B5: the cost of an idle program, minus the requests of the control plane itself.
func (b *bench) idle(ctx context.Context, c *cluster.Cluster, name string, objects int, watch time.Duration) error {
	alone, err := b.requestsDuring(ctx, c, watch)
	if err != nil {
		return err
	}
	_, err = b.coldStart(ctx, c, name, "widgets", "create,update", objects, func(p *process) error {
		before, err := proc.CPU(p.pid())
		if err != nil {
			return err
		}
		began := time.Now()
		requests, err := b.requestsDuring(ctx, c, watch)
		if err != nil {
			return err
		}
		took := time.Since(began)
		after, err := proc.CPU(p.pid())
		if err != nil {
			return err
		}
		b.results.Add(report.Row{ID: "B5", Program: name, Objects: objects, Values: []report.Value{
			{Name: "CPU", Is: 100 * (after - before).Seconds() / took.Seconds(), Unit: "%"},
			{Name: "requests per minute", Is: requests.sumBut(alone) / watch.Minutes(), Unit: "requests"},
		}})
		return nil
	})
	return err
}

// requestsDuring returns the requests to the API server within d.
func (b *bench) requestsDuring(ctx context.Context, c *cluster.Cluster, d time.Duration) (requests, error) {
	before, err := c.Requests(ctx)
	if err != nil {
		return nil, err
	}
	time.Sleep(d)
	after, err := c.Requests(ctx)
	return requests(after.Since(before)), err
}

// requests are counted by verb and resource.
type requests cluster.Counts

// sumBut sums up the requests, except those that the control plane also makes by itself,
// such as discovery and lease renewals.
func (r requests) sumBut(alone requests) (sum float64) {
	for what, n := range r {
		if alone[what] == 0 && what != "LIST services" { // which it repeats every few minutes
			sum += n
		}
	}
	return sum
}

// resuming is B7: new objects are created while the program processes all existing ones.
func (b *bench) resuming(ctx context.Context, c *cluster.Cluster, name string, objects int) error {
	return b.run(c, name, "widgets", "create,resume", func(p *process) error {
		if _, err := p.await(time.Minute, "start resuming", func(s proto.Stats) bool { return s.Seen > 0 }); err != nil {
			return err
		}
		stop, err := b.profile(p, "B7", name)
		if err != nil {
			return err
		}
		made := 0
		for ; made < 400; made++ {
			if err := c.CreateStamped(ctx, "widgets", objects+1+made); err != nil {
				return err
			}
			if s, err := p.harness.Ask("counts"); err != nil || s.Seen >= objects {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if _, err := p.await(5*time.Minute, "handle new objects", func(s proto.Stats) bool { return s.Calls > made }); err != nil {
			return err
		}
		if err := stop(); err != nil {
			return err
		}
		s, err := p.harness.Ask("stats")
		if err != nil {
			return err
		}
		if len(s.Latencies) == 0 {
			return errNothing
		}
		b.results.Add(report.Row{ID: "B7", Program: name, Objects: objects, Values: append(quantiles(s.Latencies),
			report.Value{Name: "new objects", Is: float64(len(s.Latencies)), Unit: "objects"})})
		return nil
	})
}

// deletions is B8: all objects are being deleted, and have deletion handlers.
func (b *bench) deletions(ctx context.Context, c *cluster.Cluster, name string, objects int) error {
	return b.run(c, name, "sprockets", "delete", func(p *process) error {
		if _, err := p.quiet(); err != nil {
			return err
		}
		if err := c.Fresh(ctx, "sprockets", 0, objects); err != nil {
			return err
		}
		time.Sleep(time.Second)
		if _, err := c.Written(ctx); err != nil { // they get their finalizers
			return err
		}
		if _, err := p.quiet(); err != nil {
			return err
		}
		if _, err := p.harness.Ask("reset"); err != nil {
			return err
		}
		before, err := c.Requests(ctx)
		if err != nil {
			return err
		}
		stop, err := b.profile(p, "B8", name)
		if err != nil {
			return err
		}
		cpu, err := proc.CPU(p.pid())
		if err != nil {
			return err
		}
		began := time.Now()
		if err := c.Change(ctx, "sprockets", 0, objects, cluster.Deleting); err != nil {
			return err
		}
		for left := int64(1); left > 0; {
			if time.Since(began) > 10*time.Minute {
				return fmt.Errorf("%d objects are not deleted", left)
			}
			time.Sleep(50 * time.Millisecond)
			if left, err = c.Count(ctx, "sprockets"); err != nil {
				return err
			}
		}
		took := time.Since(began)
		end, err := p.quiet()
		if err != nil {
			return err
		}
		if err := stop(); err != nil {
			return err
		}
		s, err := p.harness.Ask("counts")
		if err != nil {
			return err
		}
		after, err := c.Requests(ctx)
		if err != nil {
			return err
		}
		each := float64(objects)
		b.results.Add(report.Row{ID: "B8", Program: name, Objects: objects, Values: []report.Value{
			{Name: "rate", Is: each / took.Seconds(), Unit: "objects/s"},
			{Name: "CPU per object", Is: float64((end - cpu).Microseconds()) / 1000 / each, Unit: "ms"},
			{Name: "handler calls per object", Is: float64(s.Calls) / each, Unit: "calls"},
			{Name: "writes per object", Is: after.Since(before).Writes("sprockets") / each, Unit: "requests"},
		}})
		return nil
	})
}

// relisting is B9: the program is suspended while objects change and the control plane
// restarts. The program's resource version is then too old.
func (b *bench) relisting(ctx context.Context, c *cluster.Cluster, name string, objects int) error {
	_, err := b.coldStart(ctx, c, name, "widgets", "create,update", objects, func(p *process) error {
		before, err := p.settled()
		if err != nil {
			return err
		}
		if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		for range 3 { // more than it can have seen
			if err := c.Fresh(ctx, "gears", 0, 200); err != nil {
				return err
			}
		}
		if err := c.Restart(ctx); err != nil {
			return err
		}
		if err := c.Fresh(ctx, "widgets", sentinel-1, sentinel); err != nil {
			return err
		}
		if err := c.Served(ctx, "widgets", objects); err != nil {
			return err
		}
		if err := proc.ResetPeak(p.pid()); err != nil {
			return err
		}
		cpu, err := proc.CPU(p.pid())
		if err != nil {
			return err
		}
		began := time.Now()
		if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			return err
		}
		s, err := p.await(5*time.Minute, "list again", func(s proto.Stats) bool { return s.Calls >= 2 })
		if err != nil {
			return err
		}
		end, err := p.quiet()
		if err != nil {
			return err
		}
		after, err := p.settled()
		if err != nil {
			return err
		}
		b.results.Add(report.Row{ID: "B9", Program: name, Objects: objects, Values: []report.Value{
			{Name: "time", Is: time.Unix(0, s.Last).Sub(began).Seconds(), Unit: "s"},
			{Name: "CPU per object", Is: float64((end - cpu).Microseconds()) / float64(objects), Unit: "µs"},
			{Name: "settled before", Is: mega(before.RSS), Unit: "MB"},
			{Name: "peak", Is: mega(after.Peak), Unit: "MB"},
			{Name: "handler calls", Is: float64(s.Calls - 2), Unit: "calls"},
		}})
		return nil
	})
	return err
}

// background is B10: timers for all objects, and daemons for some.
func (b *bench) background(ctx context.Context, c *cluster.Cluster, timers, daemons int, watch time.Duration) error {
	if err := c.Labelled(ctx, "gears", 0, daemons); err != nil {
		return err
	}
	if err := c.Fresh(ctx, "gears", daemons, timers); err != nil {
		return err
	}
	if err := c.Served(ctx, "gears", timers); err != nil {
		return err
	}
	return b.run(c, gopfName, "gears", "timer,daemon", func(p *process) error {
		if _, err := p.await(5*time.Minute, "run all", func(s proto.Stats) bool { return s.Calls >= timers && s.Seen >= daemons }); err != nil {
			return err
		}
		if _, err := p.quiet(); err != nil {
			return err
		}
		if _, err := p.harness.Ask("reset"); err != nil {
			return err
		}
		before, err := proc.CPU(p.pid())
		if err != nil {
			return err
		}
		began := time.Now()
		time.Sleep(watch)
		took := time.Since(began)
		after, err := proc.CPU(p.pid())
		if err != nil {
			return err
		}
		s, err := p.harness.Ask("stats")
		if err != nil {
			return err
		}
		if len(s.Latencies) == 0 {
			return errNothing
		}
		memory, err := p.settled()
		if err != nil {
			return err
		}
		late := quantiles(s.Latencies)
		b.results.Add(report.Row{ID: "B10", Program: gopfName, Objects: timers, Note: fmt.Sprintf("%d daemons", daemons), Values: []report.Value{
			{Name: "settled", Is: mega(memory.RSS), Unit: "MB"},
			{Name: "peak", Is: mega(memory.Peak), Unit: "MB"},
			{Name: "CPU", Is: 100 * (after - before).Seconds() / took.Seconds(), Unit: "%"},
			{Name: "calls per minute", Is: float64(s.Calls) / took.Minutes(), Unit: "calls"},
			{Name: "lateness p50", Is: late[0].Is, Unit: "ms"},
			{Name: "lateness p99", Is: late[1].Is, Unit: "ms"},
		}})
		return nil
	})
}

// sizes is B4: memory by the number and the size of objects.
func (b *bench) sizes(ctx context.Context, name string, numbers []int, entries int) error {
	for _, n := range numbers {
		err := b.on(ctx, name, n, entries, func(c *cluster.Cluster) error {
			s, err := b.coldStart(ctx, c, name, "widgets", "create,update", n, nil)
			if err != nil {
				return err
			}
			values := []report.Value{{Name: "settled", Is: mega(s.memory.RSS), Unit: "MB"}, {Name: "peak", Is: mega(s.memory.Peak), Unit: "MB"}}
			b.results.Add(report.Row{ID: "B4", Program: name, Objects: n, Note: fmt.Sprintf("%d entries", entries), Values: values})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
