package cli

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the operator and of the framework",
		Args:  noArguments,
		Run:   func(cmd *cobra.Command, _ []string) { fmt.Fprint(cmd.OutOrStdout(), version()) },
	}
}

// version is what the program was built of, a line each.
func version() string {
	info, found := debug.ReadBuildInfo()
	if !found {
		return "The program was built without version information.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", info.Main.Path, info.Main.Version)
	for _, dep := range info.Deps {
		if dep.Path == "gopf.dev/gopf" {
			fmt.Fprintf(&b, "%s %s\n", dep.Path, dep.Version)
		}
	}
	fmt.Fprintln(&b, info.GoVersion)
	return b.String()
}
