package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/insight"
)

// historyCommand prints the timeline of an object, from the running operator.
func historyCommand(op *gopf.Operator, program string) *cobra.Command {
	var (
		f      objectFlags
		e      insight.Endpoint
		output string
	)
	cmd := &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "Show the latest steps of a running operator with an object",
		Long: `Show the timeline of an object: the turns, handler calls with their outcomes, writes and
Kubernetes events. The running operator keeps the latest steps of all objects in memory, if
it runs with --insight. Reach its address with kubectl port-forward. If it runs with
--insight-secure, use an address with https: the command then sends the token of your
kubeconfig.`,
		Example: strings.ReplaceAll(`  kubectl port-forward deployment/databases 6080
  PROGRAM history databases/main
  PROGRAM history db/main --namespace myapp --url http://localhost:6081 -o json`, "PROGRAM", program),
		Args: someArguments(1, "KIND/NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, o, err := f.object(cmd, op, args[0])
			if err != nil {
				return err
			}
			return settle(cmd.Context(), o.History(cmd.Context(), n, e, func(h *insight.History) error {
				if output == "text" {
					return h.Write(cmd.OutOrStdout())
				}
				return printJSON(cmd.OutOrStdout(), h)
			}))
		},
	}
	f.add(cmd, false)
	addEndpoint(cmd, &e, "http://"+insightAddress, "`address` of the operator's --insight")
	addOutput(cmd, &output)
	return cmd
}
