package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/policy"
	"gopf.dev/gopf/storage"
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
			prefixes, keys, err := reserved(op.Settings.Persistence)
			if err != nil {
				return err
			}
			r := policy.Reservation{Name: name, Account: account, Prefixes: prefixes, Keys: keys}
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

// reserved returns the prefixes of annotations and the keys of the status that the storages
// read or write.
func reserved(s gopf.PersistenceSettings) (prefixes, keys []string, err error) {
	for _, one := range []any{s.Progress, s.Base} {
		tracer, ok := one.(storage.Tracer)
		if !ok {
			return nil, nil, errors.New("the operator uses a storage that is not from package storage, so its annotations are unknown")
		}
		traces, ok := tracer.Traces()
		if !ok {
			return nil, nil, errors.New("the storage of the operator does not report its annotations")
		}
		prefixes, keys = append(prefixes, traces.Prefixes...), append(keys, traces.Keys...)
	}
	slices.Sort(prefixes)
	slices.Sort(keys)
	return slices.Compact(prefixes), slices.Compact(keys), nil
}
