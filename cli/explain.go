package cli

import (
	"bytes"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/explain"
	"gopf.dev/gopf/internal/insight"
)

// watchInterval is the time between two reads of explain --watch.
const watchInterval = 2 * time.Second

// explainCommand prints why handlers are called or not.
func explainCommand(op *gopf.Operator, program string) *cobra.Command {
	var (
		f              objectFlags
		output         string
		restart, watch bool
	)
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Explain why the handlers of an object are called or not",
		Long: `Explain the state of an object: the changes since it was last handled, the handlers that
are called, those that are not and why, the times of retries, and the finalizers that delay a
deletion. It makes the same decisions as the operator, from the state on the object, and works
while the operator is down. The filter functions of handlers are called.`,
		Example: strings.ReplaceAll(`  PROGRAM explain databases/main
  PROGRAM explain db/main --namespace myapp -o json`, "PROGRAM", program),
		Args: someArguments(1, "KIND/NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, o, err := f.object(cmd, op, args[0])
			if err != nil {
				return err
			}
			ctx, last := cmd.Context(), ""
			for ctx.Err() == nil { // until the user has seen enough
				text, err := explained(cmd, o, n, restart, output)
				if err != nil {
					return settle(ctx, err)
				}
				if text != last {
					if _, err := io.WriteString(cmd.OutOrStdout(), text); err != nil {
						return err
					}
					last = text
				}
				if !watch {
					return nil
				}
				_ = backoff.Sleep(ctx, watchInterval)
			}
			return nil
		},
	}
	f.add(cmd, false)
	addOutput(cmd, &output)
	cmd.Flags().BoolVar(&restart, "restart", false, "explain what happens when the operator starts: resume handlers take part")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "print the explanation again when it changes")
	return cmd
}

// explained returns the printed explanation.
func explained(cmd *cobra.Command, o *insight.Operator, n insight.Name, restart bool, output string) (string, error) {
	var out bytes.Buffer
	err := o.Explain(cmd.Context(), n, restart, func(r *explain.Report) error {
		if output == "text" {
			return r.Write(&out, time.Now())
		}
		return printJSON(&out, r)
	})
	return out.String(), err
}
