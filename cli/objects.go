package cli

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/insight"
	"gopf.dev/gopf/logs"
)

// objectFlags are the flags of commands about objects.
type objectFlags struct {
	everywhere bool
	namespaces []string
	kubeconfig string
	context    string
}

// add adds the flags. several means that the command is for objects in many namespaces.
func (f *objectFlags) add(cmd *cobra.Command, several bool) {
	flags := cmd.Flags()
	if several {
		flags.BoolVarP(&f.everywhere, "all-namespaces", "A", false, "objects in all namespaces")
		flags.StringArrayVarP(&f.namespaces, "namespace", "n", nil, "`name` of the namespace, or a pattern for several; may be repeated; default: that of the kubeconfig")
	} else {
		flags.StringArrayVarP(&f.namespaces, "namespace", "n", nil, "`name` of the namespace; default: that of the kubeconfig")
	}
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the cluster")
	flags.StringVar(&f.context, "context", "", "`name` of the context in the kubeconfig; default: the current context")
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[withoutVariables] = "true"
}

// operator returns the commands of the operator, with the credentials of the user.
func (f *objectFlags) operator(cmd *cobra.Command, op *gopf.Operator) (*insight.Operator, error) {
	if f.everywhere && len(f.namespaces) > 0 {
		return nil, misuse("--all-namespaces and --namespace exclude each other; use only one of them")
	}
	for _, n := range f.namespaces {
		if strings.TrimSpace(n) == "" {
			return nil, misuse("--namespace needs a name or a pattern")
		}
	}
	log := slog.New(logs.New(cmd.ErrOrStderr(), logs.Options{Level: slog.LevelWarn}))
	return gopf.TestSeam{}.Insight(op, gopf.Namespaces(f.namespaces...), gopf.Kubeconfig(f.kubeconfig, f.context), gopf.Log(log))
}

// object parses the name of an object, and returns the commands of the operator.
func (f *objectFlags) object(cmd *cobra.Command, op *gopf.Operator, text string) (insight.Name, *insight.Operator, error) {
	n, err := f.name(text)
	if err != nil {
		return n, nil, err
	}
	o, err := f.operator(cmd, op)
	return n, o, err
}

// name parses the name of an object.
func (f *objectFlags) name(text string) (insight.Name, error) {
	n, err := insight.ParseName(text)
	if err != nil {
		return n, misuse("%w", err)
	}
	if len(f.namespaces) > 1 {
		return n, misuse("--namespace is given %d times; an object is in one namespace", len(f.namespaces))
	}
	if len(f.namespaces) == 1 {
		n.Namespace = f.namespaces[0]
	}
	return n, nil
}

// selection are the flags that select many objects of a resource.
type selection struct {
	selector string
	all      bool
}

func (s *selection) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "label `selector` of objects; the argument is then a resource")
	cmd.Flags().BoolVar(&s.all, "all", false, "all objects of the resource; the argument is then a resource")
}

// objects returns the objects that the arguments and flags name.
func (s *selection) objects(f *objectFlags, args []string) (o insight.Objects, err error) {
	if !s.all && s.selector == "" {
		if f.everywhere {
			return o, misuse("--all-namespaces is for --all and --selector")
		}
		for _, arg := range args {
			n, err := f.name(arg)
			if err != nil {
				return o, err
			}
			o.Names = append(o.Names, n)
		}
		return o, nil
	}
	if s.all && s.selector != "" {
		return o, misuse("--all and --selector exclude each other; use only one of them")
	}
	if len(args) != 1 || strings.Contains(args[0], "/") {
		return o, misuse("with --all or --selector, the argument is one resource, for example 'databases'")
	}
	if !f.everywhere && len(f.namespaces) == 0 {
		return o, misuse("with --all or --selector, choose the namespaces with --namespace or --all-namespaces")
	}
	return insight.Objects{Kind: args[0], Selector: s.selector}, nil
}

// someArguments returns a check of the number of arguments, at least one. A negative most
// means no limit.
func someArguments(most int, use string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || most >= 0 && len(args) > most {
			return misuse("got %d arguments; use '%s'", len(args), fmt.Sprintf("%s %s", cmd.CommandPath(), use))
		}
		return nil
	}
}

// pauseCommand pauses objects, and continueCommand continues them.
func pauseCommand(op *gopf.Operator, program string) *cobra.Command {
	var (
		f        objectFlags
		selected selection
		life     lifetime
		reason   string
	)
	cmd := &cobra.Command{
		Use:   "pause KIND/NAME…",
		Short: "Pause the handling of single objects",
		Long: `Pause the handling of objects: no change, reconcile, daemon or timer function is
called for them. Event handlers, indices, reviews and deletions continue. The pause is an
annotation of the object, so it survives restarts, and works while the operator is down.
namespace/NAME pauses all objects in a namespace, if the operator runs with patterns of
namespaces: other operators do not watch namespaces.`,
		Example: strings.ReplaceAll(`  PROGRAM pause databases/main --for 1h --reason "moving the data"
  PROGRAM pause databases --selector tier=test --namespace myapp`, "PROGRAM", program),
		Args: someArguments(-1, "KIND/NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			objects, err := selected.objects(&f, args)
			if err != nil {
				return err
			}
			o, err := f.operator(cmd, op)
			if err != nil {
				return err
			}
			p := insight.Pausing{Objects: objects, Reason: reason, Out: cmd.OutOrStdout()}
			if life > 0 {
				p.Until = time.Now().Add(time.Duration(life))
			}
			return settle(cmd.Context(), o.Pause(cmd.Context(), p))
		},
	}
	f.add(cmd, true)
	selected.add(cmd)
	cmd.Flags().Var(&life, "for", "`duration` of the pause, in seconds or with a unit like 1h; default: until 'continue'")
	cmd.Flags().StringVar(&reason, "reason", "", "`text` that explains the pause to others")
	return cmd
}

func continueCommand(op *gopf.Operator, program string) *cobra.Command {
	var (
		f        objectFlags
		selected selection
	)
	cmd := &cobra.Command{
		Use:   "continue KIND/NAME…",
		Short: "End the pause of single objects",
		Long: `End the pause of objects, also one that another client has started. Everything that
has changed in the meantime is one update.`,
		Example: strings.ReplaceAll(`  PROGRAM continue databases/main
  PROGRAM continue databases --all --all-namespaces`, "PROGRAM", program),
		Args: someArguments(-1, "KIND/NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			objects, err := selected.objects(&f, args)
			if err != nil {
				return err
			}
			o, err := f.operator(cmd, op)
			if err != nil {
				return err
			}
			return settle(cmd.Context(), o.Pause(cmd.Context(), insight.Pausing{Objects: objects, Continue: true, Out: cmd.OutOrStdout()}))
		},
	}
	f.add(cmd, true)
	selected.add(cmd)
	return cmd
}

// retryCommand makes delayed handlers of an object due now.
func retryCommand(op *gopf.Operator, program string) *cobra.Command {
	var (
		f     objectFlags
		again bool
	)
	cmd := &cobra.Command{
		Use:   "retry KIND/NAME [HANDLER…]",
		Short: "Call delayed handlers of an object now",
		Long: `Call the delayed change handlers of an object now, by removing the delays from their
records. A running operator sees the change at once; a stopped one when it starts. Paused
objects are refused. Where the policy of the command 'policy' protects the annotations of
the operator, the account needs the verb 'operate' on the resource.`,
		Example: strings.ReplaceAll(`  PROGRAM retry databases/main
  PROGRAM retry databases/main backup --again`, "PROGRAM", program),
		Args: someArguments(-1, "KIND/NAME [HANDLER…]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := f.name(args[0])
			if err != nil {
				return err
			}
			o, err := f.operator(cmd, op)
			if err != nil {
				return err
			}
			return settle(cmd.Context(), o.Retry(cmd.Context(), insight.Retrying{Name: n, Handlers: args[1:], Again: again, Out: cmd.OutOrStdout()}))
		},
	}
	f.add(cmd, false)
	cmd.Flags().BoolVar(&again, "again", false, "also call handlers that have succeeded or failed for the current change")
	return cmd
}
