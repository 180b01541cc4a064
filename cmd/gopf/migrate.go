package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gopf.dev/gopf/internal/dev/migrate"
)

// newMigrate returns the command "migrate".
func newMigrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Write the skeleton of a Go operator from an operator in another language",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMigrateKopf())
	return cmd
}

func newMigrateKopf() *cobra.Command {
	var p project
	cmd := &cobra.Command{
		Use:   "kopf --out FOLDER FILE.py...",
		Short: "Write the skeleton of a Go operator from the Python files of a Kopf operator",
		Long: `Read the Python files of a Kopf operator and write a Go project. No Python is needed, and
no Python code is run.

The Go operator has the same handlers under the same ids, with their filters, options and
settings. So it continues the work of the Python operator on the same objects, and the
other way round. It keeps its state in annotations, as Kopf does.

Each function has its Python code as a comment. Functions that consist of clear statements
are translated: log lines, changes of the patch, results, errors, conditions on the object.
All others return an error when they are called: the handler is retried, and never counts
as done. Go code for their clear lines is in the comment.

The project has two kinds of tests: the declarations are valid, and neither objects that
Kopf has handled nor its records cause calls of handlers. MIGRATION.md lists all handlers
with their ids, and the points that are left to do.

Give all files of one operator at once: constants are looked up in all of them. If a
repository has several operators, migrate each into its own folder.`,
		Example: `  gopf migrate kopf --out ../databases main.py
  gopf migrate kopf --out ../databases --module github.com/me/databases operator/*.py`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the Python files of the operator, as in 'gopf migrate kopf --out ../databases main.py'")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.Name == "" {
				return usagef("--out is missing; name a new folder for the Go project")
			}
			if err := p.complete(); err != nil {
				return err
			}
			var sources []migrate.Source
			for _, file := range args {
				text, err := os.ReadFile(file)
				if err != nil {
					return usageError{err}
				}
				sources = append(sources, migrate.Source{Name: filepath.ToSlash(file), Text: string(text)})
			}
			result, err := migrate.Kopf(sources, p.Name)
			if err != nil {
				return fmt.Errorf("migrate: %w", err)
			}
			if err := writeAll(p.folder, result.Files); err != nil {
				return err
			}
			if err := p.require(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\nLeft to do: %d; see %s.\n", result.Report.Rates(), len(result.Report.Left), filepath.Join(p.folder, "MIGRATION.md"))
			fmt.Fprintf(cmd.OutOrStdout(), "Next:\n\n  cd %s\n  go test ./...\n", p.folder)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&p.Name, "out", "", "`folder` of the Go project; it must be new or empty")
	flags.StringVar(&p.Module, "module", "", "`path` of the Go module; default: example.com/ and the name of the folder")
	flags.StringVar(&p.checkout, "gopf", "", "use gopf from this `folder` with its sources; default: the checkout or the version that this command is from")
	return cmd
}

// writeAll writes files into a folder, which it creates.
func writeAll(folder string, files map[string][]byte) error {
	for name, content := range files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
