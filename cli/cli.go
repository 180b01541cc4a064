// Package cli provides the command line of an operator: flags, environment variables,
// signals, log formats and exit codes.
//
//	func main() {
//		op := gopf.New()
//		…
//		cli.Main(op)
//	}
//
// The commands are run, explain, plan, history, pause, continue, retry, release, top,
// freeze, resume, policy, state, version and completion. docs/cli.md lists
// all flags and environment variables. Flags and variables change [gopf.Operator.Settings]
// before the operator runs. Settings without a flag or variable stay as the program has set
// them. Startup handlers can still change them.
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
	"gopf.dev/gopf/internal/terminal"
	"gopf.dev/gopf/logs"
)

// Exit codes.
const (
	ok          = 0
	failed      = 1   // the operator failed
	misused     = 2   // the command line is invalid
	planning    = 2   // of plan: there is something to do
	interrupted = 130 // stopped by a second signal, or before a command was complete
	overdue     = 137 // not stopped in time, and ended as if by SIGKILL
)

// Main runs the operator according to the command line, and exits the process. The exit
// code is 0 after a graceful shutdown, 1 after a failure, and 2 if the command line is
// invalid. SIGINT and SIGTERM stop the operator gracefully. A second signal exits
// immediately with 130. A shutdown that takes longer than
// Process.UltimateExitingTimeout of [gopf.Settings] exits with 137.
//
// In a container with a memory limit, Main sets the soft memory limit of the Go runtime to
// 90 % of it, unless the environment variable GOMEMLIMIT is set.
func Main(op *gopf.Operator) {
	if limit := memoryLimit(os.DirFS("/sys/fs/cgroup"), os.Getenv("GOMEMLIMIT")); limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	p := process{signals: signals, exit: os.Exit}
	os.Exit(p.main(op, os.Args[1:], os.Stdout, os.Stderr))
}

// Run runs the operator according to the arguments until it ends or the context is done,
// and returns the exit code; see [Main]. Use it in programs with their own signal
// handling: it neither handles signals nor exits the process.
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
	var todo plannedError
	switch {
	case err == nil:
		return ok
	case errors.As(err, &wrong), !started: // the latter are errors of cobra
		fmt.Fprintf(stderr, "Error: %v. See '%s --help'.\n", err, cmd.CommandPath())
		return misused
	case errors.As(err, &todo):
		return planning
	case errors.As(err, &stopped):
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return interrupted
	}
	report(cmd, stderr, err.Error()+advice(err))
	return failed
}

// report prints a failure. If the log is in JSON, it is a JSON line as well.
func report(cmd *cobra.Command, stderr io.Writer, failure string) {
	if f := cmd.Flags().Lookup("log-format"); f != nil && strings.EqualFold(f.Value.String(), string(logs.JSON)) {
		slog.New(logs.New(stderr, logs.Options{Format: logs.JSON})).Error(failure)
		return
	}
	fmt.Fprintf(stderr, "Error: %s\n", terminal.Lines(failure)) // errors may quote objects
}

// advice returns what to do about errors whose own text cannot say it, because only the
// command line knows how the cluster was chosen.
func advice(err error) string {
	var unreachable *kube.UnreachableError
	var config *kube.ConfigError
	switch {
	case errors.As(err, &unreachable):
		return "; check that the cluster is running and that the kubeconfig is for this cluster, or wait for it with --wait=2m"
	case errors.As(err, &config) && config.Problem == kube.ConfigBroken:
		return "; correct it, or choose another file with --kubeconfig"
	case errors.As(err, &config) && config.Problem == kube.ConfigDangling:
		return "; list the contexts with 'kubectl config get-contexts', and choose one with --context"
	case apierrors.IsForbidden(err):
		return "; check the credentials in the kubeconfig, or grant this user the missing permission"
	}
	return ""
}

// usageError is an error in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func misuse(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// command returns the root command. exit ends the process; nil means that the caller
// handles the exit.
func command(op *gopf.Operator, exit func(code int)) *cobra.Command {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	use := name
	if plugin, ok := strings.CutPrefix(name, "kubectl-"); ok {
		// As a plugin of kubectl, "kubectl-databases" is called as "kubectl databases".
		name = "kubectl " + strings.ReplaceAll(plugin, "_", "-")
	}
	var printVersion *bool
	root := &cobra.Command{
		Use:         use,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Short:       "A Kubernetes operator",
		Long: `A Kubernetes operator. It watches the resources of its handlers, and calls the handlers.

Flags can also be set by environment variables: GOPF_RUN_LOG_FORMAT, or
KOPF_RUN_LOG_FORMAT, sets --log-format of the command 'run'.`,
		Example: "  " + name + " run --all-namespaces\n  " + name + " run --namespace myapp --verbose\n" +
			"  " + name + " freeze --all-namespaces --peering default --lifetime 10m",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if *printVersion {
				_, err := fmt.Fprint(cmd.OutOrStdout(), version())
				return err
			}
			return misuse("the command is missing; use, for example, '%s run --all-namespaces'", name)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return suggest.FlagError(cmd.Flags(), err) })
	// Not cobra's own flag: it would occupy -v. Nor its template for the version: if a program can
	// execute templates, the linker keeps all exported methods, because a template may call them.
	printVersion = root.Flags().Bool("version", false, "print the versions of the operator and of the framework")
	root.AddCommand(runCommand(op, name, exit), freezeCommand(op, name), resumeCommand(op, name), policyCommand(op, name), stateCommand(op, name), describeCommand(op), versionCommand())
	root.AddCommand(explainCommand(op, name), pauseCommand(op, name), continueCommand(op, name), retryCommand(op, name), releaseCommand(op, name), topCommand(op, name), historyCommand(op, name), planCommand(op, name))
	return root
}

// addCompletion adds cobra's command for shell completion. It must be called after the
// output is set.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	cmd.Args = noArguments // otherwise it prints its help for unknown shells
	cmd.RunE = func(*cobra.Command, []string) error {
		return misuse("the shell is missing; use bash, zsh, fish or powershell, for example '%s bash'", cmd.CommandPath())
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
