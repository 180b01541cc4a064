package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gopf.dev/gopf"
)

// freezePriority is more than operators usually have.
const freezePriority = 100

// peeringFlags are those of commands that change a peering.
type peeringFlags struct {
	scope    scopeFlags
	logging  logFlags
	peering  string
	identity string
}

func (p *peeringFlags) add(cmd *cobra.Command, verb string) {
	flags := cmd.Flags()
	p.scope.add(flags, verb)
	flags.StringVarP(&p.peering, "peering", "P", "", "the `name` of the peering; required")
	flags.StringVarP(&p.identity, "id", "i", "", "the `identity` under which the pause is asked for; default: POD_ID, or user@host")
	p.logging.add(cmd)
}

func (p *peeringFlags) check() error {
	if p.peering == "" {
		return misuse("--peering is missing: name the peering that the operators meet at, as --peering=default")
	}
	return p.scope.check()
}

// settle makes the error of a command that was stopped tell so.
func settle(ctx context.Context, err error) error {
	var signal *signalError
	if err != nil && errors.As(context.Cause(ctx), &signal) {
		return fmt.Errorf("%w before it was done", signal)
	}
	return err
}

func freezeCommand(op *gopf.Operator, program string) *cobra.Command {
	var (
		p        peeringFlags
		dev      bool
		priority int
		life     lifetime
		message  string
	)
	cmd := &cobra.Command{
		Use:   "freeze",
		Short: "Make the operators of a peering pause",
		Long: `Make the operators of a peering pause, as if one with a higher priority were
there. The pause ends with its lifetime, or by the command 'resume'. Operators
that take part in no peering, or have a higher priority, go on.

` + aboutVariables("freeze"),
		Example: strings.ReplaceAll(`  # all that serve the whole cluster, for ten minutes
  PROGRAM freeze --all-namespaces --peering default --lifetime 10m

  # those of one namespace, for a minute
  PROGRAM freeze --namespace myapp --peering default --lifetime 60 --message "moving the data"`, "PROGRAM", program),
		Args:    noArguments,
		PreRunE: readEnvironment,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.check(); err != nil {
				return err
			}
			if life == 0 {
				return misuse("--lifetime is missing: say how long the pause may last, as --lifetime=10m")
			}
			log, err := p.logging.logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			warnOfVariables(cmd, log)
			if p.scope.unsaid() {
				log.Warn("Neither --all-namespaces nor --namespace is given: freezing the operators of the whole cluster.")
			}
			if dev {
				priority = devPriority
			}
			op.Settings.Peering.Name = p.peering
			freezing := gopf.Freezing{Priority: priority, Lifetime: time.Duration(life), Identity: p.identity}
			if err := op.FreezePeers(cmd.Context(), freezing, append(p.scope.options(), gopf.Log(log))...); err != nil {
				return settle(cmd.Context(), err)
			}
			log = log.With("peering", p.peering, "priority", priority, "lifetime", time.Duration(life))
			if message != "" {
				log = log.With("why", message)
			}
			log.Info("The operators are frozen.")
			return nil
		},
	}
	p.add(cmd, "freeze the operators of")
	flags := cmd.Flags()
	flags.VarP(&life, "lifetime", "t", "`how long` the pause may last, in seconds or as 10m; required")
	flags.IntVarP(&priority, "priority", "p", freezePriority, "operators with this or a lower `number` pause")
	flags.BoolVar(&dev, "dev", false, "use the priority 666")
	flags.StringVarP(&message, "message", "m", "", "`why`, for the log")
	return cmd
}

func resumeCommand(op *gopf.Operator, program string) *cobra.Command {
	var p peeringFlags
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "End the pause that was begun by freeze",
		Long: `End the pause that was begun by the command 'freeze', under the same identity.

` + aboutVariables("resume"),
		Example: strings.ReplaceAll(`  PROGRAM resume --all-namespaces --peering default
  PROGRAM resume --namespace myapp --peering default --id nightly-job`, "PROGRAM", program),
		Args:    noArguments,
		PreRunE: readEnvironment,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.check(); err != nil {
				return err
			}
			log, err := p.logging.logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			warnOfVariables(cmd, log)
			if p.scope.unsaid() {
				log.Warn("Neither --all-namespaces nor --namespace is given: resuming the operators of the whole cluster.")
			}
			op.Settings.Peering.Name = p.peering
			if err := op.ResumePeers(cmd.Context(), p.identity, append(p.scope.options(), gopf.Log(log))...); err != nil {
				return settle(cmd.Context(), err)
			}
			log.Info("The operators may go on.", "peering", p.peering)
			return nil
		},
	}
	p.add(cmd, "resume the operators of")
	return cmd
}

// lifetime is a flag for a time in seconds, or with a unit.
type lifetime time.Duration

func (l *lifetime) Set(s string) error {
	d, err := time.ParseDuration(s)
	if n, whole := strconv.Atoi(s); whole == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	switch {
	case err != nil:
		return errors.New("give seconds, or a time with its unit, as 60 or 10m")
	case d < time.Second:
		return errors.New("it must be one second at least")
	}
	*l = lifetime(d)
	return nil
}

func (l *lifetime) Type() string { return "duration" }

func (l *lifetime) String() string {
	if *l == 0 {
		return ""
	}
	return time.Duration(*l).String()
}
