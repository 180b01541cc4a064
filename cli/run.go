package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"gopf.dev/gopf"
)

func runCommand(op *gopf.Operator, program string) *cobra.Command {
	var (
		everywhere bool
		namespaces []string
		standalone bool
		kubeconfig string
		context    string
		logging    logFlags
	)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Serve the cluster until stopped",
		Long: `Serve the cluster until stopped.

The cluster is found through --kubeconfig, the variable KUBECONFIG, the service
account of the pod, or ~/.kube/config. Ctrl-C or SIGTERM stop the operator: it
finishes what it is doing, and exits with 0. A second one ends it at once.`,
		Example: strings.ReplaceAll(`  # everything in the cluster
  PROGRAM run --all-namespaces

  # one namespace, with all details in the log
  PROGRAM run --namespace myapp --verbose

  # all namespaces of an application but those of pull requests
  PROGRAM run --namespace 'myapp-*,!myapp-pr-*'`, "PROGRAM", program),
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if everywhere && len(namespaces) > 0 {
				return misuse(cmd, "--all-namespaces and --namespace exclude each other: use one of them")
			}
			for _, n := range namespaces {
				if strings.TrimSpace(n) == "" {
					return misuse(cmd, "--namespace needs a name or a pattern")
				}
			}
			log, err := logging.logger(cmd.ErrOrStderr())
			if err != nil {
				return misuse(cmd, "%w", err)
			}
			if !everywhere && len(namespaces) == 0 {
				log.Warn("Neither --all-namespaces nor --namespace is given: serving the whole cluster.")
			}
			return op.Run(cmd.Context(),
				gopf.Namespaces(namespaces...),
				gopf.Kubeconfig(kubeconfig, context),
				gopf.Log(log),
			)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&everywhere, "all-namespaces", "A", false, "serve the whole cluster")
	flags.StringArrayVarP(&namespaces, "namespace", "n", nil, "serve the namespaces with this `name or pattern`; may be repeated")
	flags.BoolVar(&standalone, "standalone", false, "do not look for other operators to take turns with; there is no such search yet, so this changes nothing")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "the `file` that tells where the cluster is")
	flags.StringVar(&context, "context", "", "the `name` of the context in the kubeconfig; default: the current one")
	logging.add(flags)
	return cmd
}
