package main

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopf.dev/gopf/bench/cluster"
)

// The numbers of entries for objects of about 1.3, 10 and 100 KB.
const (
	small = 10
	large = 95
	huge  = 950
)

// plan selects the measurements.
type plan struct {
	only, with, sizes string
	rounds            int  // of the mode median
	reversed          bool // the programs take turns in reverse
}

func (p plan) wants(id string) bool {
	return p.only == "" || slices.Contains(strings.Split(p.only, ","), id)
}

// without returns the plan minus one measurement.
func (p plan) without(id string) plan {
	if p.only == "" {
		p.only = "M,B1,B2,B3,B4,B5,B6,B7,B8,B9,B10,B11,B12,B13,B14"
	}
	p.only = strings.Join(slices.DeleteFunc(strings.Split(p.only, ","), func(s string) bool { return s == id }), ",")
	return p
}

func (p plan) numbers(usual ...int) ([]int, error) {
	if p.sizes == "" {
		return usual, nil
	}
	var numbers []int
	for _, text := range strings.Split(p.sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("-n: %w", err)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// operators returns the names of the operators to measure.
func (p plan) operators(all map[string]program) []string {
	short := map[string]string{gopfName: "gopf", statusName: "status", typedName: "typed", untypedName: "unstructured", kopfName: "kopf"}
	var names []string
	for _, name := range []string{gopfName, statusName, typedName, untypedName, kopfName} {
		if _, there := all[name]; there && (p.with == "" || slices.Contains(strings.Split(p.with, ","), short[name])) {
			names = append(names, name)
		}
	}
	if p.reversed {
		slices.Reverse(names)
	}
	return names
}

func (p plan) bare() bool { return p.with == "" || strings.Contains(p.with, "bare") }

func (b *bench) measure(ctx context.Context, mode string, p plan) error {
	switch mode {
	case "quick":
		return b.quick(ctx, p)
	case "bench":
		return b.usual(ctx, p)
	case "full":
		return b.full(ctx, p)
	case "median":
		return b.median(ctx, p)
	}
	return fmt.Errorf("unknown mode %q; use quick, bench, full or median", mode)
}

// quick detects regressions within minutes.
func (b *bench) quick(ctx context.Context, p plan) error {
	if err := b.memories(ctx, p); err != nil {
		return err
	}
	sizes, err := p.numbers(1000)
	if err != nil {
		return err
	}
	if p.only == "" {
		p.only = "B1,B3,B6"
	}
	if err := b.compare(ctx, p, sizes, 60); err != nil {
		return err
	}
	return b.children(ctx, p, sizes)
}

// full measures what 100,000 objects cost in each program: cold starts, latency, lists of all
// objects, and timers. It leaves out storms, whose costs per object do not depend on the number.
func (b *bench) full(ctx context.Context, p plan) error {
	sizes, err := p.numbers(100000)
	if err != nil {
		return err
	}
	if p.only == "" {
		p.only = "B3,B6,B9,B10"
	}
	if err := b.compare(ctx, p, sizes, 150); err != nil {
		return err
	}
	for _, n := range sizes {
		for _, name := range p.operators(b.programs) {
			if !p.wants("B9") {
				continue
			}
			log.Printf("%s: a list of %d objects again", name, n)
			if err := b.on(ctx, name, n, small, func(c *cluster.Cluster) error { return b.relisting(ctx, c, name, n) }); err != nil {
				return fmt.Errorf("B9: %w", err)
			}
		}
		if err := b.timers(ctx, p, n, n/10); err != nil {
			return err
		}
	}
	return nil
}

// median repeats the measurements with the strictest budgets several times in turn
// with those of controller-runtime. A machine that is slow for a while decides nothing then.
func (b *bench) median(ctx context.Context, p plan) error {
	if p.rounds < 1 {
		return fmt.Errorf("-rounds: %d is too few; use at least 1", p.rounds)
	}
	sizes, err := p.numbers(1000, 5000, 20000)
	if err != nil {
		return err
	}
	if p.only == "" {
		p.only = "B1,B3,B4,B13,B14"
	}
	if p.with == "" {
		p.with = "status,typed"
	}
	for round := range p.rounds {
		log.Printf("round %d of %d", round+1, p.rounds)
		p.reversed = round%2 == 1 // the first one of a round may find the machine in another state
		if err := b.compare(ctx, p, sizes, 150); err != nil {
			return err
		}
		if err := b.children(ctx, p, sizes[:min(2, len(sizes))]); err != nil {
			return err
		}
		for _, name := range p.operators(b.programs) {
			if !p.wants("B4") {
				continue
			}
			if err := b.sizes(ctx, name, []int{0, 20000}, small); err != nil {
				return err
			}
		}
	}
	b.results.Median(p.rounds)
	return nil
}

// usual makes all measurements, with up to 20,000 objects.
func (b *bench) usual(ctx context.Context, p plan) error {
	const many = 20000
	if err := b.memories(ctx, p); err != nil {
		return err
	}
	sizes, err := p.numbers(1000, 5000, many)
	if err != nil {
		return err
	}
	if err := b.compare(ctx, p, sizes, 150); err != nil {
		return err
	}
	if err := b.children(ctx, p, sizes[:min(2, len(sizes))]); err != nil {
		return err
	}
	for _, name := range p.operators(b.programs) {
		log.Printf("%s: memory, idleness, resuming, deletions, relisting", name)
		if p.wants("B4") {
			if err := b.sizes(ctx, name, []int{0, 5000, many}, small); err != nil {
				return err
			}
			if err := b.sizes(ctx, name, []int{5000}, large); err != nil {
				return err
			}
			if err := b.sizes(ctx, name, []int{500}, huge); err != nil {
				return err
			}
		}
		if !p.wants("B5") && !p.wants("B7") && !p.wants("B8") && !p.wants("B9") {
			continue
		}
		err := b.on(ctx, name, many, small, func(c *cluster.Cluster) error { return b.rest(ctx, c, p, name, many) })
		if err != nil {
			return err
		}
	}
	if p.wants("B12") {
		if err := b.reviews(ctx, p, 10000); err != nil {
			return fmt.Errorf("B12: %w", err)
		}
	}
	if p.wants("B11") {
		for _, c := range []struct {
			n       int
			limited bool
		}{{10000, false}, {200, true}} {
			if err := b.namespaces(ctx, c.n, c.limited); err != nil {
				return fmt.Errorf("B11: %w", err)
			}
		}
	}
	return b.timers(ctx, p, many, 0, many/10)
}

// timers makes B10: a timer for each object, with each of these numbers of daemons.
func (b *bench) timers(ctx context.Context, p plan, objects int, numbers ...int) error {
	if !p.wants("B10") {
		return nil
	}
	for _, daemons := range numbers {
		err := b.on(ctx, gopfName, 0, small, func(c *cluster.Cluster) error {
			return b.background(ctx, c, objects, daemons, 2*time.Minute)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rest makes the measurements that need many objects.
func (b *bench) rest(ctx context.Context, c *cluster.Cluster, p plan, name string, objects int) error {
	for _, part := range []struct {
		id string
		fn func() error
	}{
		{"B5", func() error { return b.idle(ctx, c, name, objects, time.Minute) }},
		{"B8", func() error { return b.deletions(ctx, c, name, 2000) }},
		{"B9", func() error { return b.relisting(ctx, c, name, objects) }},
		{"B7", func() error { return b.resuming(ctx, c, name, objects) }},
	} {
		if !p.wants(part.id) {
			continue
		}
		if err := part.fn(); err != nil {
			return fmt.Errorf("%s: %w", part.id, err)
		}
	}
	return nil
}

// memories measures the memory for 20,000 objects with and without an index.
func (b *bench) memories(ctx context.Context, p plan) error {
	if !p.wants("M") {
		return nil
	}
	log.Print("memory with 20,000 objects")
	return b.on(ctx, gopfName, 20000, small, func(c *cluster.Cluster) error { return b.memory(ctx, c, 20000) })
}

// compare makes B1, B2, B3 and B6 for all programs.
func (b *bench) compare(ctx context.Context, p plan, sizes []int, updates int) error {
	if !p.wants("B1") && !p.wants("B2") && !p.wants("B3") && !p.wants("B6") {
		return nil
	}
	for _, n := range sizes {
		for _, name := range p.operators(b.programs) {
			here := p
			if n > 5000 { // for the time it takes
				here = p.without("B2")
				if name == untypedName {
					here = here.without("B1")
				}
			}
			log.Printf("%s with %d objects", name, n)
			err := b.on(ctx, name, n, small, func(c *cluster.Cluster) error { return b.basics(ctx, c, here, name, n, updates) })
			if err != nil {
				return err
			}
		}
		if p.bare() {
			if err := b.on(ctx, bareName, n, small, func(c *cluster.Cluster) error { return b.floor(ctx, c, p, n) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// basics makes B1, B2, B3 and B6 for one operator.
func (b *bench) basics(ctx context.Context, c *cluster.Cluster, p plan, name string, objects, updates int) error {
	if p.wants("B3") || p.wants("B6") {
		err := b.cold(ctx, c, name, objects, func(running *process) error {
			if !p.wants("B6") {
				return nil
			}
			return b.latency(ctx, c, name, running, objects, updates)
		})
		if err != nil {
			return err
		}
	}
	var storms []string
	for _, id := range []string{"B1", "B2"} {
		if p.wants(id) {
			storms = append(storms, id)
		}
	}
	if len(storms) == 0 {
		return nil
	}
	return b.storms(ctx, c, name, objects, storms...)
}

// floor measures the baseline for operators.
func (b *bench) floor(ctx context.Context, c *cluster.Cluster, p plan, objects int) error {
	if p.wants("B3") {
		if err := b.bareList(c, objects); err != nil {
			return err
		}
	}
	if p.wants("B1") {
		return b.bareStorm(ctx, c, objects)
	}
	return nil
}
