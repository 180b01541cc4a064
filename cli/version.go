package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the operator and of the framework",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, found := debug.ReadBuildInfo()
			if !found {
				return fmt.Errorf("the program was built without version information")
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", info.Main.Path, info.Main.Version)
			for _, dep := range info.Deps {
				if dep.Path == "gopf.dev/gopf" {
					fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", dep.Path, dep.Version)
				}
			}
			fmt.Fprintln(cmd.OutOrStdout(), info.GoVersion)
			return nil
		},
	}
}
