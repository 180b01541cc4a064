package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"gopf.dev/gopf"
)

func stateCommand(op *gopf.Operator, program string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Manage the state that the operator keeps on objects",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return misuse("the command is missing; use, for example, '%s move --to=status'", cmd.CommandPath())
		},
	}
	cmd.AddCommand(moveCommand(op, program))
	return cmd
}

func moveCommand(op *gopf.Operator, program string) *cobra.Command {
	var (
		scope   scopeFlags
		logging logFlags
		to      string
		dryRun  bool
	)
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Move the state of all objects to the status or to annotations",
		Long: `Move the state of all objects to the status or to annotations. No handler is called.
Stop the operator first, unless it keeps its state in that place. If the command is
interrupted, run it again.

` + aboutVariables("move"),
		Example: strings.ReplaceAll(`  # count the objects whose state is not in the status
  PROGRAM state move --to status --dry-run --all-namespaces

  # move the state back to annotations
  PROGRAM state move --to annotations --all-namespaces`, "PROGRAM", program),
		Args:    noArguments,
		PreRunE: readEnvironment,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to != "status" && to != "annotations" {
				return misuse("--to is %q; use --to=status or --to=annotations", to)
			}
			if err := scope.check(); err != nil {
				return err
			}
			log, err := logging.logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			warnOfVariables(cmd, log)
			if scope.unsaid() {
				log.Warn("Neither --all-namespaces nor --namespace is given: moving the state in the whole cluster.")
			}
			return settle(cmd.Context(), op.MoveState(cmd.Context(), to, dryRun, cmd.OutOrStdout(), append(scope.options(), gopf.Log(log))...))
		},
	}
	flags := cmd.Flags()
	scope.add(flags, "move the state in")
	flags.StringVar(&to, "to", "", "`place` of the state: status or annotations; required")
	flags.BoolVar(&dryRun, "dry-run", false, "only count the objects")
	logging.add(cmd)
	return cmd
}
