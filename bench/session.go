package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"gopf.dev/gopf/bench/cluster"
	"gopf.dev/gopf/bench/proto"
	"gopf.dev/gopf/bench/report"
)

// sentinel is the number of a new object that comes last in every list. When it is handled,
// all others have been seen.
const sentinel = 9_999_999

// bench is one run of measurements.
type bench struct {
	folder   string
	programs map[string]program
	results  *report.Results
	profiles string            // the folder for profiles; empty for none
	seeds    map[[2]int]string // folders by number of objects and entries
}

// seed returns a folder with the given number of handled objects. It is created on first use.
func (b *bench) seed(ctx context.Context, objects, entries int) (string, error) {
	wanted := [2]int{objects, entries}
	if folder := b.seeds[wanted]; folder != "" {
		return folder, nil
	}
	folder := filepath.Join(b.folder, fmt.Sprintf("seed-%d-%d", objects, entries))
	if objects > 0 {
		base, err := b.seed(ctx, 0, entries)
		if err != nil {
			return "", err
		}
		if err := cluster.Copy(base, folder); err != nil {
			return "", err
		}
	}
	c, err := cluster.Start(ctx, folder)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Stop() }()
	if objects == 0 {
		err = b.found(ctx, c, entries)
	} else {
		log.Printf("seeding %d objects", objects)
		err = c.Handled(ctx, "widgets", 0, objects)
	}
	if err != nil {
		return "", fmt.Errorf("seed %d objects: %w", objects, err)
	}
	b.seeds[wanted] = folder
	return folder, c.Stop()
}

// found creates the kinds and the mould.
func (b *bench) found(ctx context.Context, c *cluster.Cluster, entries int) error {
	if err := c.DefineKinds(ctx); err != nil {
		return err
	}
	err := c.MakeMould(ctx, entries, func(ctx context.Context, handled func() bool) error {
		p, err := b.programs[gopfName].start(c.Kubeconfig(), "widgets", "create")
		if err != nil {
			return err
		}
		defer p.stop()
		_, err = p.await(30*time.Second, "handle the first object", func(proto.Stats) bool { return handled() })
		return err
	})
	fresh, handled := c.Sizes()
	b.results.Sizes = append(b.results.Sizes, report.Size{Entries: entries, Fresh: fresh, Handled: handled})
	b.results.Kubernetes = c.Version()
	return err
}

// on runs fn on a copy of a seed.
func (b *bench) on(ctx context.Context, objects, entries int, fn func(*cluster.Cluster) error) error {
	seed, err := b.seed(ctx, objects, entries)
	if err != nil {
		return err
	}
	folder := filepath.Join(b.folder, "copy")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := cluster.Copy(seed, folder); err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	c, err := cluster.Start(ctx, folder)
	if err != nil {
		return err
	}
	defer func() { _ = c.Stop() }()
	if objects > 0 {
		if err := c.Served(ctx, "widgets", objects); err != nil {
			return err
		}
	}
	return fn(c)
}

// run starts the program and calls fn with it.
func (b *bench) run(c *cluster.Cluster, name, resource, does string, fn func(*process) error) error {
	p, err := b.programs[name].start(c.Kubeconfig(), resource, does)
	if err != nil {
		return err
	}
	defer p.stop()
	if err := fn(p); err != nil {
		return fmt.Errorf("%s, %s: %w", name, resource, err)
	}
	return nil
}
