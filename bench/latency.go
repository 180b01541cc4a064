package main

import (
	"context"
	"slices"
	"time"

	"gopf.dev/gopf/bench/cluster"
	"gopf.dev/gopf/bench/proto"
	"gopf.dev/gopf/bench/report"
)

// latency is B6: one object is updated repeatedly while the program runs, and a bare watch
// for comparison.
func (b *bench) latency(ctx context.Context, c *cluster.Cluster, name string, p *process, objects, updates int) error {
	return b.run(c, bareName, "widgets", "watch", func(bare *process) error {
		if _, err := bare.await(10*time.Second, "watch", func(s proto.Stats) bool { return s.Seen > 0 }); err != nil {
			return err
		}
		if _, err := p.harness.Ask("reset"); err != nil {
			return err
		}
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := range updates {
			<-tick.C
			if err := c.Stamp(ctx, "widgets", cluster.Name(0), int64(i)+10); err != nil {
				return err
			}
		}
		time.Sleep(500 * time.Millisecond)
		handled, err := p.harness.Ask("stats")
		if err != nil {
			return err
		}
		watched, err := bare.harness.Ask("stats")
		if err != nil {
			return err
		}
		if len(handled.Latencies) == 0 || len(watched.Latencies) == 0 {
			return errNothing
		}
		b.results.Add(report.Row{ID: "B6", Program: name, Objects: objects, Values: append(quantiles(handled.Latencies),
			report.Value{Name: "calls per update", Is: float64(len(handled.Latencies)) / float64(updates), Unit: "calls"})})
		// The watch also sees the writes of the operator. The first event of a stamp counts.
		b.results.Add(report.Row{ID: "B6", Program: bareName, Objects: objects, Note: "watch during " + name, Values: quantiles(firsts(watched.Latencies))})
		return nil
	})
}

// firsts drops the latencies of later events with the same stamp. They grow until the next
// stamp.
func firsts(all []int64) []int64 {
	var kept []int64
	for i, l := range all {
		if i == 0 || l < all[i-1] {
			kept = append(kept, l)
		}
	}
	return kept
}

func quantiles(latencies []int64) []report.Value {
	slices.Sort(latencies)
	at := func(q float64) float64 {
		return float64(latencies[min(len(latencies)-1, int(q*float64(len(latencies))))]) / 1e6
	}
	return []report.Value{{Name: "p50", Is: at(.5), Unit: "ms"}, {Name: "p99", Is: at(.99), Unit: "ms"}}
}
