package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/insight"
)

// releaseCommand removes the marks of the operator from the cluster.
func releaseCommand(op *gopf.Operator, program string) *cobra.Command {
	var (
		f     objectFlags
		r     insight.Releasing
		lease string
	)
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Remove everything of the operator from the objects, to uninstall it",
		Long: `Remove the finalizers, annotations and states of the operator from all objects of its
resources, also from objects that no replica selects. Objects whose deletion waits for the
operator are then deleted without a call of a handler. Finalizers of others, results of
handlers, and children stay; children lose the label of the operator. For the whole
cluster, the command also deletes the webhook configurations and the lease of the operator.

Stop the operator first: the command refuses if the lease or the peering shows that it runs.
If it is interrupted, run it again. With --delete, the operator must run: the command
deletes the objects of --kind, and waits until their deletion is handled. Where the policy
of the command 'policy' protects the annotations of the operator, the account needs the verb
'operate' on the resources.`,
		Example: strings.ReplaceAll(`  PROGRAM release --all-namespaces --dry-run
  PROGRAM release --all-namespaces
  PROGRAM release --namespace myapp --kind databases --selector tier=test`, "PROGRAM", program),
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.Delete && (len(r.Kinds) == 0 || r.Force) {
				return misuse("--delete needs --kind, which names the resource whose objects are deleted, and excludes --force")
			}
			if !f.everywhere && len(f.namespaces) == 0 {
				return misuse("choose the namespaces with --all-namespaces or --namespace")
			}
			o, err := f.operator(cmd, op)
			if err != nil {
				return err
			}
			if lease != "" {
				namespace, name, ok := strings.Cut(lease, "/")
				if !ok || namespace == "" || name == "" {
					return misuse("--lease is %q; use NAMESPACE/NAME", lease)
				}
				o.Lease = insight.Lease{Namespace: namespace, Name: name}
			}
			r.Out = cmd.OutOrStdout()
			return settle(cmd.Context(), o.Release(cmd.Context(), r))
		},
	}
	f.add(cmd, true)
	flags := cmd.Flags()
	flags.StringArrayVar(&r.Kinds, "kind", nil, "only objects of this `resource`; may be repeated")
	flags.StringVarP(&r.Selector, "selector", "l", "", "only objects that match this label `selector`")
	flags.StringVar(&lease, "lease", "", "`NAMESPACE/NAME` of the Lease of the leader election, if flags of 'run' set it")
	flags.BoolVar(&r.DryRun, "dry-run", false, "only count the objects")
	flags.BoolVar(&r.Force, "force", false, "even if the operator runs")
	flags.BoolVar(&r.Delete, "delete", false, "delete the objects of --kind, and wait until the running operator has cleaned up")
	return cmd
}
