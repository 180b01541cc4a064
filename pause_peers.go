package gopf

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"gopf.dev/gopf/internal/engine"
	"gopf.dev/gopf/internal/peering"
)

// PeerPause is a temporary pause of the operators in a peering. It acts like an operator
// with the given priority. It is not renewed: it ends after its lifetime, or by
// [Operator.UnpausePeers].
type PeerPause struct {
	// Priority is the priority of the pause. Operators with this priority or a lower
	// one pause.
	Priority int
	// Lifetime is the maximum duration of the pause: 1 s to 7 days.
	Lifetime time.Duration
	// Identity is the name of the record in the peering. "" means the value of POD_ID,
	// or else user@host.
	Identity string
}

// PausePeers pauses all operators of the peering in [PeeringSettings.Name], for the
// whole cluster or for the namespaces in the options. The operator itself may be stopped:
// only its settings and login handlers are used. It returns an error if the peering
// does not exist, and a [LoginError] if the API server rejects the credentials.
func (op *Operator) PausePeers(ctx context.Context, p PeerPause, opts ...RunOption) error {
	if p.Lifetime < time.Second {
		return fmt.Errorf("pause peers: the lifetime %s is too short; use at least 1s", p.Lifetime)
	}
	if p.Lifetime > peering.LongestLifetime {
		return fmt.Errorf("pause peers: the lifetime %s is too long; use at most %s, and pause again before it ends", p.Lifetime, peering.LongestLifetime)
	}
	config, err := op.commandConfig(opts)
	if err != nil {
		return err
	}
	record := peering.Record{Identity: p.Identity, Priority: p.Priority, Lifetime: p.Lifetime, LastSeen: time.Now()}
	return explainLogin(engine.Freeze(ctx, config, record))
}

// UnpausePeers ends the pause that [Operator.PausePeers] started under the identity. ""
// means the value of POD_ID, or else user@host.
func (op *Operator) UnpausePeers(ctx context.Context, identity string, opts ...RunOption) error {
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
	config.Peering.Clusterwide = run.clusterwide() // the settings may belong to a running operator
	return config, err
}
