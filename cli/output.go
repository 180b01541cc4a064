package cli

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"gopf.dev/gopf/internal/insight"
	"gopf.dev/gopf/internal/terminal"
)

// addOutput adds the flag --output to a command. Other formats than text and json are
// refused before the command runs.
func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "text", "`format`: text or json")
	complete(cmd, "output", "text", "json")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *output != "text" && *output != "json" {
			return misuse("--output is %q; use text or json", *output)
		}
		return nil
	}
}

// addEndpoint adds the flags of the address of a running operator to a command.
func addEndpoint(cmd *cobra.Command, e *insight.Endpoint, address, usage string) {
	flags := cmd.Flags()
	flags.StringVar(&e.URL, "url", address, usage)
	flags.StringVar(&e.CAFile, "certificate-authority", "", "`file` with the certificate authority of the operator, for an address with https")
	flags.BoolVar(&e.Insecure, "insecure-skip-tls-verify", false, "do not verify the certificate of the operator; only for addresses of this computer, such as those of kubectl port-forward")
}

// printJSON prints a value as indented JSON. Texts of objects in it cannot control the
// terminal.
func printJSON(to io.Writer, v any) error {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(to, terminal.JSON(out.String()))
	return err
}
