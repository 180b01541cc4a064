package main

import (
	"context"
	"fmt"
	"log"

	"gopf.dev/gopf/bench/cluster"
)

// childrenID is the id of the measurement of children.
const childrenID = "B13"

// children is B13: all objects are new, and each gets three children.
func (b *bench) children(ctx context.Context, p plan, sizes []int) error {
	if !p.wants(childrenID) {
		return nil
	}
	for _, n := range sizes {
		for _, name := range p.operators(b.programs) {
			if name != gopfName && name != typedName {
				continue
			}
			log.Printf("%s with %d objects and their children", name, n)
			err := b.on(ctx, name, n, small, func(c *cluster.Cluster) error {
				return b.run(c, name, "gadgets", "children", func(running *process) error {
					if _, err := running.quiet(); err != nil {
						return err
					}
					return b.storm(ctx, c, running, childrenID, name, n, func() error { return c.Fresh(ctx, "gadgets", 0, n) })
				})
			})
			if err != nil {
				return fmt.Errorf("%s: %w", childrenID, err)
			}
		}
	}
	return nil
}
