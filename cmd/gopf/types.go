package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"gopf.dev/gopf/internal/dev/gotypes"
)

// newTypes returns the command "types".
func newTypes() *cobra.Command {
	var o gotypes.Options
	var out string
	cmd := &cobra.Command{
		Use:   "types [flags] FILE...",
		Short: "Write Go types for custom resource definitions",
		Long: `Read custom resource definitions from YAML or JSON files and write Go types for their
objects. By default, the types are those of the stored version.

Optional numbers, booleans and objects are pointers. Fields that the operator only passes
on, such as pod templates, can stay raw JSON or maps: a copy through typed fields would
add or lose fields. Paths have dots between the keys, [] after lists, and * for the
values of maps, as in "spec.pools[].template".`,
		Example: "  gopf types crd.yaml > types.go\n  gopf types --raw spec.template --package databases --out types.go crd.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			var all bytes.Buffer
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					return usageError{err}
				}
				all.Write(text)
				all.WriteString("\n---\n")
			}
			code, err := gotypes.Generate(all.Bytes(), o)
			if err != nil {
				return fmt.Errorf("write Go types of %s: %w", strings.Join(files, ", "), err)
			}
			if out != "" {
				return os.WriteFile(out, code, 0o644)
			}
			_, err = cmd.OutOrStdout().Write(code)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Package, "package", "main", "`name` of the package")
	flags.StringVar(&o.Version, "version", "", "`version` to write, or all; default: the stored version")
	flags.StringSliceVar(&o.Raw, "raw", nil, "`path` of a field that stays raw JSON; may be repeated")
	flags.StringSliceVar(&o.Maps, "map", nil, "`path` of a field that stays map[string]any; may be repeated")
	flags.StringVar(&out, "out", "", "`file` to write; default: the standard output")
	return cmd
}
