package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
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
	profiles string          // the folder for profiles; empty for none
	seeds    map[seed]string // folders
}

// seed describes a cluster with handled objects.
type seed struct {
	objects, entries int
	program          string // the program that handled them
}

// handler returns the program whose state is on the objects that a program finds.
func handler(program string) string {
	if program == statusName {
		return statusName
	}
	return gopfName
}

// seed returns a folder with handled objects. It is created on first use.
func (b *bench) seed(ctx context.Context, wanted seed) (string, error) {
	objects := wanted.objects
	if folder := b.seeds[wanted]; folder != "" {
		return folder, nil
	}
	folder := filepath.Join(b.folder, fmt.Sprintf("seed-%d-%d-%s", objects, wanted.entries, strings.ReplaceAll(wanted.program, " ", "-")))
	if objects > 0 {
		empty := wanted
		empty.objects = 0
		base, err := b.seed(ctx, empty)
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
		err = b.found(ctx, c, wanted)
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
func (b *bench) found(ctx context.Context, c *cluster.Cluster, wanted seed) error {
	if err := c.DefineKinds(ctx); err != nil {
		return err
	}
	err := c.MakeMould(ctx, wanted.entries, func(ctx context.Context, handled func() bool) error {
		p, err := b.programs[wanted.program].start(c.Kubeconfig(), "widgets", "create")
		if err != nil {
			return err
		}
		defer p.stop()
		_, err = p.await(30*time.Second, "handle the first object", func(proto.Stats) bool { return handled() })
		return err
	})
	fresh, handled := c.Sizes()
	b.results.Sizes = append(b.results.Sizes, report.Size{Entries: wanted.entries, Program: wanted.program, Fresh: fresh, Handled: handled})
	b.results.Kubernetes = c.Version()
	return err
}

// on runs fn on a copy of a cluster with objects that the program finds handled.
func (b *bench) on(ctx context.Context, program string, objects, entries int, fn func(*cluster.Cluster) error) error {
	from, err := b.seed(ctx, seed{objects, entries, handler(program)})
	if err != nil {
		return err
	}
	folder := filepath.Join(b.folder, "copy")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := cluster.Copy(from, folder); err != nil {
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
