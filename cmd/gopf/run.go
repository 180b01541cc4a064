package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func newRun(stop *interrupt) *cobra.Command {
	return &cobra.Command{
		Use:   "run PKG… [flags]",
		Short: "Build an operator from packages and run it",
		Long: `Build an operator from packages, and run it on the cluster of your kubeconfig.

PKG is an import path, a folder, or a .go file. It is either one main package, or
one or more packages that export

  func Register(op *gopf.Operator)

In the latter case, no main function is needed: the Register functions are called in
the given order. Nothing is written into your module.

The flags are those of the operator's own command "run". All arguments from the first
flag on are passed to the operator. "gopf run PKG --help" lists its flags. The most
common ones:

  -A, --all-namespaces      serve all namespaces
  -n, --namespace name      serve the namespaces that match this name or pattern
  -v, --verbose             also log debug messages of the framework
      --standalone          ignore other operators, and do not join a peering
      --kubeconfig file     kubeconfig of the cluster

Signals are forwarded to the operator, and the exit code is that of the operator.

No cluster? "gopf dev" starts one.`,
		Example: `  gopf run ./handlers --all-namespaces --verbose
  gopf run ./handlers example.com/shared/cleanup -n myapp
  gopf run handlers.go -A
  gopf run ./cmd/myoperator -A`,
		DisableFlagParsing: true, // the flags belong to the operator
		RunE: func(cmd *cobra.Command, args []string) error {
			packages, flags, err := splitArgs(args)
			if err != nil {
				return err
			}
			if packages == nil {
				return cmd.Help()
			}
			return runPackages(cmd.Context(), stop, packages, flags, cmd)
		},
	}
}

// splitArgs separates packages from the operator's flags, which begin at the first dash.
// Only the operator knows which of its flags have values. It returns no packages if the
// user requests help.
func splitArgs(args []string) (packages, flags []string, err error) {
	n := 0
	for n < len(args) && !strings.HasPrefix(args[n], "-") {
		n++
	}
	packages, flags = args[:n], args[n:]
	switch {
	case n == 0 && len(flags) > 0 && (flags[0] == "--help" || flags[0] == "-h"):
		return nil, nil, nil
	case n == 0 && len(flags) > 0:
		return nil, nil, usagef("name the packages before the flags, as in 'gopf run ./handlers %s'", flags[0])
	case n == 0:
		return nil, nil, usagef("PKG is missing; name the packages with handlers, as in 'gopf run ./handlers --all-namespaces'")
	}
	if len(flags) > 0 && flags[0] == "--" {
		flags = flags[1:]
	}
	return packages, flags, nil
}

func runPackages(ctx context.Context, stop *interrupt, packages, flags []string, cmd *cobra.Command) error {
	b, err := prepareBuild(ctx, packages)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "gopf-run-")
	if err != nil {
		return fmt.Errorf("create a temporary folder: %w", err)
	}
	defer os.RemoveAll(temp)
	executable, err := b.into(ctx, temp, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	return stop.supervise(nil, process{
		path: executable, args: append([]string{"run"}, flags...), name: "the operator", transparent: true,
	}, cmd.ErrOrStderr())
}

// prepareBuild resolves the packages and decides how to build an operator from them.
func prepareBuild(ctx context.Context, args []string) (*build, error) {
	module, packages, err := findPackages(ctx, args)
	if err != nil {
		return nil, err
	}
	return planBuild(module, packages)
}
