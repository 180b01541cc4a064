package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"gopf.dev/gopf"
)

// describeCommand prints the declarations of the operator as JSON, for the command gopf. It
// has the flags of run, because they change settings, but it does not connect to the
// cluster and reads no environment variables.
func describeCommand(op *gopf.Operator) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:    "describe",
		Short:  "Print the declarations of the operator as JSON",
		Long:   "Print the declarations of the operator as JSON, as they are with the given flags of 'run'.",
		Args:   noArguments,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(op.Settings.Insight.Secure); err != nil {
				return err
			}
			f.apply(&op.Settings)
			d, err := gopf.TestSeam{}.Describe(op)
			if err != nil {
				return err
			}
			d.Scope.Namespaces = f.scope.namespaces
			text, err := json.MarshalIndent(d, "", "  ")
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(append(text, '\n'))
			return err
		},
	}
	f.add(cmd)
	return cmd
}
