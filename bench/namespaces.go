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

// namespaces is B11: the cost of a cold start in many namespaces that a pattern selects,
// each with one handled object. With limited permissions, the operator may not watch the
// whole cluster.
func (b *bench) namespaces(ctx context.Context, n int, limited bool) error {
	note, args := "", []string{"--namespaces", "team-*"}
	if limited {
		note, args = "without permission for the cluster", append(args, "--as", cluster.Limited)
	}
	log.Printf("%d namespaces %s", n, note)
	return b.on(ctx, gopfName, 0, small, func(c *cluster.Cluster) error {
		if err := c.Settle(ctx, n); err != nil {
			return fmt.Errorf("create namespaces: %w", err)
		}
		if err := c.Served(ctx, "widgets", n+1); err != nil { // the API server has read all of them
			return err
		}
		if limited {
			if err := c.Limit(ctx, n); err != nil {
				return fmt.Errorf("limit permissions: %w", err)
			}
		} else if err := b.bareNamespaces(c, n); err != nil {
			return err
		}
		p, err := b.programs[gopfName].start(c.Kubeconfig(), "widgets", "create,update", args...)
		if err != nil {
			return err
		}
		defer p.stop()
		counts, err := p.await(5*time.Minute, "be ready", func(s proto.Stats) bool { return s.Calls >= 1 })
		if err != nil {
			return err
		}
		cpu, err := p.quiet()
		if err != nil {
			return err
		}
		memory, err := p.settled()
		if err != nil {
			return err
		}
		b.results.Add(report.Row{ID: "B11", Program: gopfName, Objects: n, Note: note, Values: []report.Value{
			{Name: "ready", Is: time.Unix(0, counts.First).Sub(p.began).Seconds(), Unit: "s"},
			{Name: "CPU", Is: cpu.Seconds(), Unit: "s"},
			{Name: "settled", Is: mega(memory.RSS), Unit: "MB"},
			{Name: "peak", Is: mega(memory.Peak), Unit: "MB"},
		}})
		return nil
	})
}

// bareNamespaces measures the baseline of B11.
func (b *bench) bareNamespaces(c *cluster.Cluster, n int) error {
	return b.run(c, bareName, "widgets", "list", func(p *process) error {
		s, err := p.await(5*time.Minute, "list", func(s proto.Stats) bool { return s.Calls > 0 })
		if err != nil {
			return err
		}
		if s.Seen <= n {
			return fmt.Errorf("only %d objects were listed", s.Seen)
		}
		b.results.Add(report.Row{ID: "B11", Program: bareName, Objects: n, Note: "paged list", Values: []report.Value{
			{Name: "ready", Is: time.Unix(0, s.First).Sub(p.began).Seconds(), Unit: "s"},
		}})
		return nil
	})
}
