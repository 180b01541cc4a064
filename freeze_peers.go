package gopf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"gopf.dev/gopf/internal/engine"
	"gopf.dev/gopf/internal/peering"
)

// Freezing is a pause that is asked for in a peering, as if an operator of some
// priority were there. It is not renewed: it ends with its lifetime, or by
// [Operator.ResumePeers].
type Freezing struct {
	// Priority is what operators must have more of, not to pause.
	Priority int
	// Lifetime is how long they pause at the most: 1 s to 7 days.
	Lifetime time.Duration
	// Identity is under what the record is found again; "" is the user and the
	// host.
	Identity string
}

// FreezePeers makes all operators pause that take part in the peering named in
// the settings, of the whole cluster or of the namespaces in the options. The
// operator itself need not run; its settings and login handlers tell how the
// cluster is reached. A peering that does not exist is an error.
func (op *Operator) FreezePeers(ctx context.Context, f Freezing, opts ...RunOption) error {
	if f.Lifetime < time.Second {
		return errors.New("freezing needs a lifetime of one second at least")
	}
	if f.Lifetime > peering.LongestLifetime {
		return fmt.Errorf("operators pause for %s at most: freeze them again before that", peering.LongestLifetime)
	}
	config, err := op.commandConfig(opts)
	if err != nil {
		return err
	}
	record := peering.Record{Identity: f.Identity, Priority: f.Priority, Lifetime: f.Lifetime, LastSeen: time.Now()}
	return explainLogin(engine.Freeze(ctx, config, record))
}

// ResumePeers takes back what [Operator.FreezePeers] has done under the identity;
// "" is the user and the host.
func (op *Operator) ResumePeers(ctx context.Context, identity string, opts ...RunOption) error {
	config, err := op.commandConfig(opts)
	if err != nil {
		return err
	}
	return explainLogin(engine.Unfreeze(ctx, config, identity))
}

func (op *Operator) commandConfig(opts []RunOption) (engine.Config, error) {
	if err := op.Err(); err != nil {
		return engine.Config{}, err
	}
	run := runOptions{log: slog.Default(), jitter: rand.Float64}
	for _, o := range opts {
		o(&run)
	}
	if err := run.prepare(); err != nil {
		return engine.Config{}, err
	}
	config, err := run.engineConfig(op)
	config.Peering.Clusterwide = run.clusterwide() // the settings may be those of an operator that runs
	return config, err
}
