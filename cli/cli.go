// Package cli puts a command line around an operator: flags and variables,
// signals, log formats, exit codes.
//
//	func main() {
//		op := gopf.New()
//		…
//		cli.Main(op)
//	}
//
// The commands are run, freeze, resume, version and completion; docs/cli.md has
// all their flags and variables. What they say is put into [gopf.Operator.Settings]
// before the operator runs; what they do not say is left as the program has set
// it. Startup handlers have the last word.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/suggest"
	"gopf.dev/gopf/logs"
)

// Exit codes.
const (
	ok          = 0
	failed      = 1   // the operator could not do its work
	misused     = 2   // the command line is wrong
	interrupted = 130 // it was told to stop twice, or before a command was done
	overdue     = 137 // it did not stop in time, and was ended as if by SIGKILL
)

// Main runs the operator as the command line says, and exits the process: with
// 0 after a clean stop, with 1 after a failure, with 2 if the command line is
// wrong. SIGINT and SIGTERM stop the operator; a second one ends the process at
// once, with 130. A stop that takes longer than
// [gopf.ProcessSettings.UltimateExitingTimeout] ends the process with 137.
//
// In a container with a memory limit, the Go runtime gets 90 % of it as its soft
// limit, unless the variable GOMEMLIMIT is set.
func Main(op *gopf.Operator) {
	if limit := memoryLimit(os.DirFS("/sys/fs/cgroup"), os.Getenv("GOMEMLIMIT")); limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	p := process{signals: signals, exit: os.Exit}
	os.Exit(p.main(op, os.Args[1:], os.Stdout, os.Stderr))
}

// Run runs the operator as the arguments say until it ends or the context is
// done, and returns the exit code. It is [Main] for programs that have their
// own: it neither listens for signals nor ends the process.
func Run(ctx context.Context, op *gopf.Operator, args []string, stdout, stderr io.Writer) int {
	return execute(ctx, command(op, nil), args, stdout, stderr)
}

func execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	addCompletion(root)
	cmd, err := root.ExecuteContextC(ctx)
	var wrong *usageError
	var stopped *signalError
	switch {
	case err == nil:
		return ok
	case errors.As(err, &wrong), !started: // the latter are cobra's own complaints
		fmt.Fprintf(stderr, "Error: %v. See '%s --help'.\n", err, cmd.CommandPath())
		return misused
	case errors.As(err, &stopped):
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return interrupted
	}
	report(cmd, stderr, err.Error()+advice(err))
	return failed
}

// report tells of a failure, in JSON if the lines before it are: whoever reads
// them can read this one, too.
func report(cmd *cobra.Command, stderr io.Writer, failure string) {
	if f := cmd.Flags().Lookup("log-format"); f != nil && strings.EqualFold(f.Value.String(), string(logs.JSON)) {
		slog.New(logs.New(stderr, logs.Options{Format: logs.JSON})).Error(failure)
		return
	}
	fmt.Fprintf(stderr, "Error: %s\n", failure)
}

// advice says what to do about an error that does not say so itself, because only
// the command line knows how the cluster was chosen.
func advice(err error) string {
	var unreachable *kube.UnreachableError
	var config *kube.ConfigError
	switch {
	case errors.As(err, &unreachable):
		return "; check that the cluster is running and that the kubeconfig names it, or wait for it with --wait=2m"
	case errors.As(err, &config) && config.Problem == kube.ConfigBroken:
		return "; correct it, or name another with --kubeconfig"
	case errors.As(err, &config) && config.Problem == kube.ConfigDangling:
		return "; 'kubectl config get-contexts' lists those that it has: name one with --context"
	case apierrors.IsForbidden(err):
		return "; check the credentials in the kubeconfig, or allow this user what is missing"
	}
	return ""
}

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func misuse(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// command is the whole command line. exit ends the process; nil if that is not
// for us to do.
func command(op *gopf.Operator, exit func(code int)) *cobra.Command {
	name := filepath.Base(os.Args[0])
	root := &cobra.Command{
		Use:   name,
		Short: "A Kubernetes operator",
		Long: `A Kubernetes operator. It watches the resources that it has handlers for, and calls them.

Flags of the commands may also be given as variables: --log-format of 'run' is
GOPF_RUN_LOG_FORMAT, or KOPF_RUN_LOG_FORMAT.`,
		Example: "  " + name + " run --all-namespaces\n  " + name + " run --namespace myapp --verbose\n" +
			"  " + name + " freeze --all-namespaces --peering default --lifetime 10m",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArguments,
		RunE: func(*cobra.Command, []string) error {
			return misuse("say what to do, for example '%s run --all-namespaces'", name)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return suggest.FlagError(cmd.Flags(), err) })
	root.Flags().Bool("version", false, "print the versions of the operator and of the framework") // or else it would have -v
	root.SetVersionTemplate("{{.Version}}")
	root.AddCommand(runCommand(op, name, exit), freezeCommand(op, name), resumeCommand(op, name), policyCommand(op, name), versionCommand())
	return root
}

// addCompletion adds cobra's command for completion, once it is known where its
// output goes.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	cmd.Args = noArguments // or else it would print its help for shells that it does not know
	cmd.RunE = func(*cobra.Command, []string) error {
		return misuse("name the shell: bash, zsh, fish or powershell, for example '%s bash'", cmd.CommandPath())
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		var known []string
		for _, c := range cmd.Commands() {
			known = append(known, c.Name())
		}
		return misuse("unknown command or argument %q%s", args[0], suggest.DidYouMean(args[0], known, "%q"))
	}
	return nil
}
