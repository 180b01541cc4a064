package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/insight"
	"gopf.dev/gopf/internal/top"
)

// clearScreen moves the cursor of a terminal to the top, and clears the rest.
const clearScreen = "\x1b[H\x1b[2J"

// topCommand shows the activity of a running operator.
func topCommand(op *gopf.Operator, program string) *cobra.Command {
	var (
		f        objectFlags
		e        insight.Metrics
		interval = lifetime(2 * time.Second)
		once     bool
	)
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the activity of a running operator",
		Long: `Show the activity of a running operator from its metrics: watches, queues, retries,
the slowest handlers, and requests to the API server. The operator must run with --metrics.
With --pod, the metrics are read through the API server, which needs the permission 'get'
on pods/proxy. If the operator runs with --metrics-secure, use an address with https:
the command then sends the token of your kubeconfig.`,
		Example: strings.ReplaceAll(`  PROGRAM top --url http://localhost:9090/metrics
  PROGRAM top --pod databases-7f9c --port 9090 --namespace databases`, "PROGRAM", program),
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if e.Pod != "" && cmd.Flags().Changed("url") {
				return misuse("--pod and --url exclude each other; use only one of them")
			}
			if len(f.namespaces) > 1 {
				return misuse("--namespace is given %d times; a pod is in one namespace", len(f.namespaces))
			}
			if len(f.namespaces) == 1 {
				e.Namespace = f.namespaces[0]
			}
			o, err := f.operator(cmd, op)
			if err != nil {
				return err
			}
			return settle(cmd.Context(), o.Sampled(cmd.Context(), e, func(read func(context.Context) (*top.Sample, error)) error {
				return refresh(cmd, read, time.Duration(interval), once)
			}))
		},
	}
	f.add(cmd, false)
	flags := cmd.Flags()
	addEndpoint(cmd, &e.Endpoint, "http://localhost:9090/metrics", "`address` of the metrics")
	flags.StringVar(&e.Pod, "pod", "", "`name` of a pod of the operator, instead of an address")
	flags.IntVar(&e.Port, "port", 9090, "`number` of the port of the metrics in the pod")
	flags.Var(&interval, "interval", "`duration` between two updates, in seconds or with a unit")
	flags.BoolVar(&once, "once", false, "print the rates of one interval, and exit")
	return cmd
}

// refresh prints the activity again and again, until the context is done. With once, it
// takes two samples and prints once.
func refresh(cmd *cobra.Command, read func(context.Context) (*top.Sample, error), interval time.Duration, once bool) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	var before *top.Sample
	var last time.Time
	for ctx.Err() == nil { // until the user has seen enough
		now, err := read(ctx)
		if err != nil {
			return err
		}
		at := time.Now()
		if !once || before != nil {
			var page bytes.Buffer
			if !once && isTerminal(out) {
				page.WriteString(clearScreen)
			}
			if err := top.Write(&page, now, before, at.Sub(last)); err != nil {
				return err
			}
			if _, err := out.Write(page.Bytes()); err != nil || once {
				return err
			}
		}
		before, last = now, at
		_ = backoff.Sleep(ctx, interval)
	}
	return nil
}

// isTerminal reports whether the output is a terminal that can be cleared.
func isTerminal(out io.Writer) bool {
	f, isFile := out.(*os.File)
	return isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}
