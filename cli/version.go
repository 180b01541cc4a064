package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gopf.dev/gopf/internal/buildinfo"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the operator and of the framework",
		Args:  noArguments,
		Run:   func(cmd *cobra.Command, _ []string) { fmt.Fprint(cmd.OutOrStdout(), version()) },
	}
}

// version returns the versions of the program and of the framework, one per line.
func version() string {
	info := buildinfo.Read()
	if info.Go == "" {
		return "The program was built without version information.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s%s\n", info.Path, info.Version, info.Source())
	if info.Path != buildinfo.Framework {
		fmt.Fprintf(&b, "%s %s\n", buildinfo.Framework, info.Framework)
	}
	fmt.Fprintln(&b, info.Go)
	return b.String()
}
