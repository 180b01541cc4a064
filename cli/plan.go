package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/insight"
	"gopf.dev/gopf/internal/object"
)

// planCommand prints the next actions of the operator, without executing them.
func planCommand(op *gopf.Operator, program string) *cobra.Command {
	var (
		f        objectFlags
		r        insight.Planning
		all      bool
		selector string
		files    []string
		failOn   []string
		output   string
	)
	cmd := &cobra.Command{
		Use:   "plan KIND/NAME…",
		Short: "Show what the operator would do, without doing it",
		Long: `Show what the operator would do with objects now: the change handlers that it would call,
and the children that it would create, change or delete, with the differences. Reconcile
handlers are called; their writes are dry runs. Other handlers are only listed.

With --all, it plans all objects of a resource, or of all resources without an argument: run
a new version of the program before you deploy it. With --file, it plans as if manifests were
applied.

The exit code is 0 if there is nothing to do, 2 if there is, and 1 after a failure.`,
		Example: strings.ReplaceAll(`  PROGRAM plan databases/main
  PROGRAM plan --file new.yaml
  PROGRAM plan --all --all-namespaces --fail-on delete`, "PROGRAM", program),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, class := range failOn {
				if !slices.Contains([]string{"change", "delete", "recreate"}, class) {
					return misuse("--fail-on is %q; use change, delete or recreate", class)
				}
			}
			if err := planned(&r, &f, args, all, selector, files); err != nil {
				return err
			}
			for _, file := range files {
				manifests, err := readManifests(file, cmd.InOrStdin())
				if err != nil {
					return fmt.Errorf("read %s: %w", file, err)
				}
				r.Manifests = append(r.Manifests, manifests...)
			}
			o, err := f.operator(cmd, op)
			if err != nil {
				return err
			}
			return settle(cmd.Context(), o.Plan(cmd.Context(), r, func(p *insight.Plan) error {
				return conclude(cmd.OutOrStdout(), p, output, all || selector != "", failOn)
			}))
		},
	}
	f.add(cmd, true)
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "all objects of the resource that is the argument, or of all resources")
	flags.StringVarP(&selector, "selector", "l", "", "label `selector` of objects; the argument is then a resource")
	flags.StringArrayVarP(&files, "file", "f", nil, "`file` with manifests to plan, or - for standard input; may be repeated")
	flags.StringSliceVar(&failOn, "fail-on", nil, "exit with 2 only for these `classes`: change, delete, recreate")
	flags.BoolVar(&r.Restarted, "restart", false, "plan what happens when the operator starts: resume handlers take part")
	addOutput(cmd, &output)
	complete(cmd, "fail-on", "change", "delete", "recreate")
	return cmd
}

// planned fills in the objects of a plan.
func planned(r *insight.Planning, f *objectFlags, args []string, all bool, selector string, files []string) error {
	many := all || selector != ""
	switch {
	case len(files) > 0 && (many || len(args) > 0):
		return misuse("--file excludes --all, --selector and arguments")
	case len(files) > 0:
		if f.everywhere {
			return misuse("--all-namespaces is for --all and --selector")
		}
		return nil
	case !many && len(args) == 0:
		return misuse("nothing is named; use KIND/NAME, --all or --file")
	case all && len(args) == 0:
		if !f.everywhere && len(f.namespaces) == 0 {
			return misuse("with --all or --selector, choose the namespaces with --namespace or --all-namespaces")
		}
		r.Everything, r.Selector = true, selector
		return nil
	}
	chosen, err := (&selection{selector: selector, all: all}).objects(f, args)
	r.Objects = chosen
	return err
}

// readManifests reads the documents of a YAML or JSON file. "-" means stdin.
func readManifests(file string, stdin io.Reader) (all []*object.Body, err error) {
	var raw []byte
	if file == "-" {
		raw, err = io.ReadAll(stdin)
	} else {
		raw, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	return splitManifests(raw)
}

// splitManifests parses YAML documents.
func splitManifests(raw []byte) (all []*object.Body, err error) {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		encoded, err := sigsyaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		if string(encoded) == "null" {
			continue // only comments
		}
		body, err := object.Parse(encoded)
		if err != nil {
			return nil, err
		}
		all = append(all, body)
	}
}

// plannedError means that a plan has something to do. It is not a failure.
type plannedError struct{}

func (plannedError) Error() string { return "there is something to do" }

// conclude prints a plan, and returns the error for its exit code. failOn has the classes
// of actions that count; empty means all.
func conclude(out io.Writer, p *insight.Plan, output string, grouped bool, failOn []string) error {
	if output == "json" {
		if err := printJSON(out, p); err != nil {
			return err
		}
	} else if err := p.Write(out, grouped && len(p.Objects) > 1); err != nil {
		return err
	}
	if n := p.Problems(); n > 0 {
		return fmt.Errorf("%d objects could not be planned", n)
	}
	if len(failOn) == 0 {
		failOn = []string{"change"}
	}
	if slices.ContainsFunc(failOn, p.Fails) {
		return plannedError{}
	}
	return nil
}
