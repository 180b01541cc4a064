// Command gopf helps to develop operators: "gopf run" builds and runs one, main
// function or not; "gopf dev" does so on a real Kubernetes control plane that it
// brings along.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Exit codes besides 0 and those of operators.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // by a signal before there was anything to run, or by a second one
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
	case !started: // cobra's own complaints, about flags and commands
		fmt.Fprintf(stderr, "gopf: %v; see %s --help\n", err, command.CommandPath())
		return exitUsage
	}
	fmt.Fprintln(stderr, "gopf:", err)
	return exitFailure
}

// usageError is about what the user typed.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitError ends gopf with the code, and a line if there is a reason.
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

"gopf run" makes an operator of packages with handlers and runs it. "gopf dev" runs
an operator on a real Kubernetes control plane of its own: nothing but Go needs to
be installed.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		// They would take more than the one line.
		DisableSuggestions: true,
	}
	root.AddCommand(newNew(), newRun(stop), newDev(stop), newExec(stop), newVersion())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of gopf",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			version := "(unknown)"
			if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
				version = info.Main.Version
			}
			fmt.Fprintf(cmd.OutOrStdout(), "gopf %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}
