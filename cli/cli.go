// Package cli puts a command line around an operator: flags, signals, log
// formats, exit codes.
//
//	func main() {
//		op := gopf.New()
//		…
//		cli.Main(op)
//	}
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/kube"
)

// Exit codes.
const (
	ok          = 0
	failed      = 1   // the operator could not do its work
	misused     = 2   // the command line is wrong
	interrupted = 130 // it was told to stop twice
)

// Main runs the operator as the command line says, and exits the process: with
// 0 after a clean stop, with 1 after a failure, with 2 if the command line is
// wrong. SIGINT and SIGTERM stop the operator; a second one ends the process at
// once.
func Main(op *gopf.Operator) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		fmt.Fprintln(os.Stderr, "Stopped at once by the second signal.")
		os.Exit(interrupted)
	}()
	os.Exit(Run(ctx, op, os.Args[1:], os.Stdout, os.Stderr))
}

// Run runs the operator as the arguments say until it ends or the context is
// done, and returns the exit code. It is [Main] for programs that have their
// own.
func Run(ctx context.Context, op *gopf.Operator, args []string, stdout, stderr io.Writer) int {
	cmd := command(op)
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	var misuse *usageError
	switch {
	case err == nil:
		return ok
	case errors.As(err, &misuse):
		fmt.Fprintf(stderr, "Error: %v. See '%s --help'.\n", err, misuse.command)
		return misused
	}
	fmt.Fprintf(stderr, "Error: %v%s\n", err, advice(err))
	return failed
}

// advice says what to do about an error that does not say so itself, because only
// the command line knows how the cluster was chosen.
func advice(err error) string {
	var unreachable *kube.UnreachableError
	var config *kube.ConfigError
	switch {
	case errors.As(err, &unreachable):
		return "; check that the cluster is running and that the kubeconfig names it"
	case errors.As(err, &config) && config.Problem == kube.ConfigBroken:
		return "; correct it, or name another with --kubeconfig"
	}
	return ""
}

// usageError is a mistake in the command line.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func misuse(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{cmd.CommandPath(), fmt.Errorf(format, args...)}
}

func command(op *gopf.Operator) *cobra.Command {
	name := filepath.Base(os.Args[0])
	root := &cobra.Command{
		Use:           name,
		Short:         "A Kubernetes operator",
		Long:          "A Kubernetes operator. It watches the resources that it has handlers for, and calls them.",
		Example:       "  " + name + " run --all-namespaces\n  " + name + " run --namespace myapp --verbose",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return misuse(cmd, "say what to do, for example '%s run --all-namespaces'", name)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misuse(cmd, "%w", err) })
	root.AddCommand(runCommand(op, name), versionCommand())
	return root
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misuse(cmd, "unknown command or argument %q", args[0])
	}
	return nil
}
