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
		Long: `Build an operator from packages and run it on the cluster of the kubeconfig.

PKG is an import path, a folder, or a .go file. It is either one main package, or
one or several packages that export

  func Register(op *gopf.Operator)

which are called in this order; then no main function is needed. Nothing is written
into your module.

The flags are those of the operator's command "run": after the packages, they are
passed on to it as they are. "gopf run PKG --help" lists them. The usual ones:

  -A, --all-namespaces      serve the whole cluster
  -n, --namespace name      serve the namespaces with this name or pattern
  -v, --verbose             log what the framework does
      --standalone          do not look for other operators
      --kubeconfig file     tells where the cluster is

Signals are passed on, and the exit code is the operator's.

There is no cluster? "gopf dev" starts one.`,
		Example: `  gopf run ./handlers --all-namespaces --verbose
  gopf run ./handlers example.com/shared/cleanup -n myapp
  gopf run handlers.go -A
  gopf run ./cmd/myoperator -A`,
		DisableFlagParsing: true, // the flags are for the operator
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

// splitArgs tells packages from the operator's own flags, which begin with the
// first dash: which of them have values, only the operator knows. No packages at
// all mean that the user asks for help.
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
		return nil, nil, usagef("give the packages before the flags, as in 'gopf run ./handlers %s'", flags[0])
	case n == 0:
		return nil, nil, usagef("PKG is missing: give the packages with handlers, as in 'gopf run ./handlers --all-namespaces'")
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
		return fmt.Errorf("make a temporary folder: %w", err)
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

// prepareBuild finds out how to build an operator from packages.
func prepareBuild(ctx context.Context, args []string) (*build, error) {
	module, packages, err := findPackages(ctx, args)
	if err != nil {
		return nil, err
	}
	return planBuild(module, packages)
}
