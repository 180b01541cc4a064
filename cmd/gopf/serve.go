package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"gopf.dev/gopf/internal/dev/nested"
)

// serveProgram is the program of a nested module that runs operators that are files.
const serveProgram = "gopf-serve"

// isOperatorFile reports whether the path is the file of an operator, and not a folder with
// Go code.
func isOperatorFile(path string) bool {
	info, err := os.Stat(path)
	ext := filepath.Ext(path)
	return err == nil && !info.IsDir() && (ext == ".yaml" || ext == ".yml" || ext == ".json")
}

// served returns a command that the nested program executes with the same arguments.
func served(stop *interrupt, c cobra.Command) *cobra.Command {
	c.DisableFlagParsing = true // the flags belong to the program
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && cmd.Name() != "schema" || slices.Contains(args, "--help") || slices.Contains(args, "-h") {
			return cmd.Help()
		}
		path, err := nested.Build(cmd.Context(), serveProgram, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		return stop.supervise(nil, process{
			path: path, args: append([]string{cmd.Name()}, args...), name: "the operator", transparent: true,
		}, cmd.ErrOrStderr())
	}
	return &c
}

func newServe(stop *interrupt) *cobra.Command {
	return served(stop, cobra.Command{
		Use:   "serve OPERATOR.yaml|--side8|--metacontroller [flags]",
		Short: "Run an operator that is a YAML file",
		Long: `Run an operator whose handlers are programs in any language, HTTP hooks, expressions and
templates. The file declares them; see docs/serve.md.

The flags are those of an operator's own command "run", which docs/cli.md lists, and:

      --install             apply the definitions that the file names first

With --side8 as the first flag, it runs the scripts of Side8's k8s-operator; see
docs/from-side8.md. With --metacontroller, it runs the controller resources of
Metacontroller; see docs/from-metacontroller.md.

The first call builds the program for it, which takes about a minute.`,
		Example: `  gopf serve operator.yaml --all-namespaces
  gopf serve operator.yaml -n myapp --install --verbose
  gopf serve --side8 --fqdn db.example.com --version v1 --resource databases
  gopf serve --metacontroller --allow-kinds 'pods,*.example.com'`,
	})
}

func newCheck(stop *interrupt) *cobra.Command {
	return served(stop, cobra.Command{
		Use:   "check OPERATOR.yaml",
		Short: "Check an operator that is a YAML file",
		Long: `Check the file of an operator without running it: keys, values, expressions, templates,
and whether its programs exist. Expressions are checked against the definition that the
file names. All problems are printed with file and line.`,
		Example: "  gopf check operator.yaml",
	})
}

func newCall(stop *interrupt) *cobra.Command {
	return served(stop, cobra.Command{
		Use:   "call HANDLER -f OBJECT.yaml [flags]",
		Short: "Call one handler of an operator that is a YAML file",
		Long: `Call one handler with an object, and print its output as JSON. There is no cluster, and
nothing is written. Flags:

  -f, --file FILE           the object
      --was FILE            the object before the change; default: it is created
      --reason reason       create, update, delete or resume; default: the one that fits
      --operator FILE       the file of the operator; default: operator.yaml`,
		Example: `  gopf call provision -f object.yaml
  gopf call resize -f object.yaml --was old.yaml`,
	})
}

func newTest(stop *interrupt) *cobra.Command {
	return served(stop, cobra.Command{
		Use:   "test TESTS.yaml [flags]",
		Short: "Run the YAML tests of an operator",
		Long: `Run the tests of an operator that is a YAML file: calls of single handlers, and whole
lives of objects on a cluster in memory; see docs/serve.md. Flags:

      --update              write the files of expectations
      --crash               also run each test with steps with a crash at every write`,
		Example: `  gopf test operator_test.yaml
  gopf test operator_test.yaml --crash`,
	})
}

func newSchema(stop *interrupt) *cobra.Command {
	return served(stop, cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of the files of operators, for editors",
	})
}
