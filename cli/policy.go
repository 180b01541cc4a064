package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/policy"
)

// policyCommand prints the policy that reserves the operator's state on objects. It does not
// connect to the cluster.
func policyCommand(op *gopf.Operator, program string) *cobra.Command {
	var (
		name, account string
		resources     []string
	)
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Print a policy that protects the operator's state on objects",
		Long: `Print a ValidatingAdmissionPolicy and its binding as YAML. They allow changes of the
operator's annotations and keys of the status on objects only to the operator itself,
and to accounts with the RBAC verb 'operate' on the resource. Kubernetes 1.30 or newer
enforces them.

` + aboutVariables("policy"),
		Example: strings.ReplaceAll(`  PROGRAM policy --account system:serviceaccount:databases:operator \
    --resource databases.example.com | kubectl apply -f -`, "PROGRAM", program),
		Args:    noArguments,
		PreRunE: readEnvironment,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if account == "" {
				return misuse("--account is missing; name the operator's account, for example --account=system:serviceaccount:NAMESPACE:NAME")
			}
			if len(resources) == 0 {
				return misuse("--resource is missing; name the resources of the operator, for example --resource=PLURAL.GROUP")
			}
			d, err := gopf.TestSeam{}.Describe(op)
			if err != nil {
				return err
			}
			if d.State.Unknown {
				return errors.New("the operator uses a storage that is not from package storage, so the places of its state are unknown")
			}
			r := policy.Reservation{Name: name, Account: account, Prefixes: d.State.Prefixes, Keys: d.State.Keys}
			for _, text := range resources {
				one, err := policy.ParseResource(text)
				if err != nil {
					return misuse("--resource: %w", err)
				}
				r.Resources = append(r.Resources, one)
			}
			text, err := r.YAML()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&account, "account", "", "user `name` of the operator in the cluster; required")
	flags.StringSliceVar(&resources, "resource", nil, "`resource` that the operator handles, as PLURAL.GROUP; may be repeated; required")
	flags.StringVar(&name, "name", strings.TrimPrefix(program, "kubectl ")+"-state", "`name` of the policy and of its binding")
	return cmd
}
