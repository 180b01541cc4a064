// Command gopf helps to develop operators. "gopf new" creates a project, "gopf run" builds
// and runs an operator, with or without a main function, and "gopf dev" runs it on a real
// Kubernetes control plane that it starts itself.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"gopf.dev/gopf/internal/buildinfo"
	"gopf.dev/gopf/internal/suggest"
)

// Exit codes besides 0 and those of operators.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // by a signal before the operator started, or by a second signal
)

func main() {
	stop := newInterrupt()
	os.Exit(run(stop, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes the command line and returns the exit code.
func run(stop *interrupt, args []string, stdout, stderr io.Writer) int {
	ctx, cancel := stop.context()
	defer cancel()
	started := false
	root := newRoot(stop)
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)

	var exit exitError
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if exit.reason != nil {
			fmt.Fprintln(stderr, "gopf:", exit.reason)
		}
		return exit.code
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(stderr, "gopf: interrupted")
		return exitInterrupted
	case errors.As(err, &usage):
		fmt.Fprintln(stderr, "gopf:", err)
		return exitUsage
	case !started: // errors of cobra about flags and commands
		fmt.Fprintf(stderr, "gopf: %v; see %s --help\n", err, command.CommandPath())
		return exitUsage
	}
	fmt.Fprintln(stderr, "gopf:", err)
	return exitFailure
}

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitError makes gopf exit with the code. If reason is not nil, it is printed.
type exitError struct {
	code   int
	reason error
}

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func newRoot(stop *interrupt) *cobra.Command {
	root := &cobra.Command{
		Use:   "gopf",
		Short: "Develop Kubernetes operators with gopf",
		Long: `Gopf helps to develop Kubernetes operators that are written with gopf.dev/gopf.

"gopf new" creates a project for a new operator. "gopf run" builds an operator from
packages with handlers, and runs it on your cluster. "gopf dev" runs it on a local
Kubernetes control plane, for which only Go must be installed, and replaces it when you
save a file. "gopf types" writes Go types for custom resource definitions.

Operators can also be YAML files with handlers in any language: "gopf serve" runs one,
and "gopf check", "gopf call" and "gopf test" help to develop it.`,
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true, // they take more than one line
		Version:            version(),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			var known []string
			for _, c := range cmd.Commands() {
				known = append(known, c.Name())
			}
			return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), suggest.DidYouMean(args[0], known, "%q"))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of gopf") // cobra's own flag would occupy -v
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return suggest.FlagError(cmd.Flags(), err) })
	root.AddCommand(newNew(), newAdd(), newRun(stop), newDev(stop), newExec(stop), newTypes(), newManifests(), newPermissions(), newProxy(), newMigrate(), newVersion())
	root.AddCommand(newServe(stop), newCheck(stop), newCall(stop), newTest(stop), newSchema(stop))
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of gopf",
		Args:  cobra.NoArgs,
		Run:   func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version()) },
	}
}

// version returns the version and the platform of this executable.
func version() string {
	info := buildinfo.Read()
	return fmt.Sprintf("gopf %s%s %s %s/%s", info.Version, info.Source(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
