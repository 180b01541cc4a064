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

// freezePriority is higher than the usual priority of operators.
const freezePriority = 100

// peeringFlags are the flags of commands that change a peering.
type peeringFlags struct {
	scope    scopeFlags
	logging  logFlags
	peering  string
	identity string
}

func (p *peeringFlags) add(cmd *cobra.Command, verb string) {
	flags := cmd.Flags()
	p.scope.add(flags, verb)
	flags.StringVarP(&p.peering, "peering", "P", "", "`name` of the peering; required")
	flags.StringVarP(&p.identity, "id", "i", "", "`identity` of this command in the peering; default: POD_ID, or user@host")
	p.logging.add(cmd)
}

func (p *peeringFlags) check() error {
	if p.peering == "" {
		return misuse("--peering is missing; name the peering of the operators, for example --peering=default")
	}
	return p.scope.check()
}

// settle names the signal in the error of a command that was interrupted.
func settle(ctx context.Context, err error) error {
	var signal *signalError
	if err != nil && errors.As(context.Cause(ctx), &signal) {
		return fmt.Errorf("%w before it was complete", signal)
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
		Long: `Make the operators of a peering pause, as if an operator with a higher priority
joined. The pause ends after its lifetime, or by the command 'resume'. Operators
without a peering, or with a higher priority, continue.

` + aboutVariables("freeze"),
		Example: strings.ReplaceAll(`  # pause the operators of the whole cluster for ten minutes
  PROGRAM freeze --all-namespaces --peering default --lifetime 10m

  # pause the operators of one namespace for a minute
  PROGRAM freeze --namespace myapp --peering default --lifetime 60 --message "moving the data"`, "PROGRAM", program),
		Args:    noArguments,
		PreRunE: readEnvironment,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.check(); err != nil {
				return err
			}
			if life == 0 {
				return misuse("--lifetime is missing; limit the duration of the pause, for example --lifetime=10m")
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
			freezing := gopf.PeerPause{Priority: priority, Lifetime: time.Duration(life), Identity: p.identity}
			if err := op.PausePeers(cmd.Context(), freezing, append(p.scope.options(), gopf.Log(log))...); err != nil {
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
	flags.VarP(&life, "lifetime", "t", "maximum `duration` of the pause, in seconds or with a unit like 10m; required")
	flags.IntVarP(&priority, "priority", "p", freezePriority, "`number`: operators with this priority or a lower one pause")
	flags.BoolVar(&dev, "dev", false, "use the priority 666")
	flags.StringVarP(&message, "message", "m", "", "`text` for the log, such as the reason")
	return cmd
}

func resumeCommand(op *gopf.Operator, program string) *cobra.Command {
	var p peeringFlags
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "End a pause started by freeze",
		Long: `End a pause that was started by the command 'freeze' with the same identity.

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
			if err := op.UnpausePeers(cmd.Context(), p.identity, append(p.scope.options(), gopf.Log(log))...); err != nil {
				return settle(cmd.Context(), err)
			}
			log.Info("The operators are resumed.", "peering", p.peering)
			return nil
		},
	}
	p.add(cmd, "resume the operators of")
	return cmd
}

// lifetime is a flag value: a duration in seconds, or with a unit.
type lifetime time.Duration

func (l *lifetime) Set(s string) error {
	d, err := time.ParseDuration(s)
	if n, whole := strconv.Atoi(s); whole == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	switch {
	case err != nil:
		return errors.New("use seconds, or a duration with a unit, like 60 or 10m")
	case d < time.Second:
		return errors.New("it must be at least one second")
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
