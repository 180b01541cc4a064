package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gopf.dev/gopf/internal/breaking"
	"gopf.dev/gopf/internal/deploy"
	"gopf.dev/gopf/internal/describe"
)

// manifestsRun is one run of "gopf manifests".
type manifestsRun struct {
	check   bool
	against string
	helm    string
	version string
	image   string
}

func newManifests() *cobra.Command {
	var m manifestsRun
	cmd := &cobra.Command{
		Use:   "manifests [PATH] [flags]",
		Short: "Write the manifests of an operator",
		Long: `Write the manifests of the operator whose main package is in the folder PATH (default:
the current one) into its subfolder "deploy": custom resource definitions from the Go
types, roles from the handlers, and the Deployment with the objects around it.

Set other options in the file gopf.yaml: name, namespace, image, replicas, namespaces,
args, env, definitions, memory, monitoring, noDocs. Patches in deploy/patches change the
generated objects.

--check is for continuous integration. It writes nothing, and fails if a file differs or
if a definition has a breaking change since the merge base with --against.`,
		Example: `  gopf manifests
  gopf manifests --check
  gopf manifests --helm chart --version 1.2.0 --image registry.example.com/operator:1.2.0`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "."
			if len(args) > 0 {
				path = args[0]
			}
			if (m.helm == "") != (m.version == "") {
				return usagef("--helm and --version belong together; use, for example, --helm chart --version 1.2.0")
			}
			return m.run(cmd.Context(), path, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&m.check, "check", false, "write nothing, and fail if a file differs or a definition has a breaking change")
	flags.StringVar(&m.against, "against", "origin/HEAD", "git `revision` for the check of definitions; its merge base with HEAD counts")
	flags.StringVar(&m.helm, "helm", "", "write a Helm chart into this `folder` instead")
	flags.StringVar(&m.version, "version", "", "`version` of the chart, such as 1.2.0")
	flags.StringVar(&m.image, "image", "", "container `image`; default: that of gopf.yaml")
	return cmd
}

func (m *manifestsRun) run(ctx context.Context, path string, stdout, stderr io.Writer) error {
	d, err := loadDeployment(ctx, path, true, stderr)
	if err != nil {
		return err
	}
	d.tell(stderr)
	if m.image != "" {
		d.options.Image, d.model.Image = m.image, m.image
	}
	folder := d.folder
	var files map[string][]byte
	if m.helm != "" {
		folder = m.helm
		files, err = deploy.Chart(d.options, m.version, d.describeAgain, d.crds, d.elsewhere...)
	} else {
		files, err = d.files()
	}
	if err != nil {
		return err
	}
	if m.check {
		return m.verify(ctx, d, folder, files, stdout, stderr)
	}
	return writeFiles(folder, files, stdout)
}

// files returns the manifests, with the patches of the user.
func (d *deployment) files() (map[string][]byte, error) {
	patches, err := deploy.Patches(filepath.Join(d.folder, "patches"))
	if err != nil {
		return nil, err
	}
	return d.model.Files(patches)
}

// describeAgain returns a new copy of the description, without the changes of the model.
func (d *deployment) describeAgain() *describe.Operator {
	operator, err := describe.Parse(d.text)
	if err != nil {
		panic(fmt.Sprintf("read the description again: %v", err)) // it was read before
	}
	return operator
}

// writeFiles writes the files that differ.
func writeFiles(folder string, files map[string][]byte, stdout io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if present, err := os.ReadFile(path); err == nil && bytes.Equal(present, files[name]) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s is written.\n", path)
	}
	return nil
}

// verify compares the files with those that would be written, and the definitions with
// those of the merge base.
func (m *manifestsRun) verify(ctx context.Context, d *deployment, folder string, files map[string][]byte, stdout, stderr io.Writer) error {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(folder, filepath.FromSlash(name))
		present, err := os.ReadFile(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			problems = append(problems, path+" is missing; run 'gopf manifests'")
		case err != nil:
			return err
		case !bytes.Equal(present, files[name]):
			problems = append(problems, fmt.Sprintf("%s differs from the declarations in line %d; run 'gopf manifests'", path, firstDifference(present, files[name])))
		}
	}
	changes, note := m.breaks(ctx, d)
	if note != "" {
		fmt.Fprintf(stderr, "Note: %s\n", note)
	}
	for _, c := range changes {
		problems = append(problems, c.String()+"; if this is intended, add '// +gopf:breaking:accepted=REASON' to the field, or to the type of a removed field")
	}
	for _, p := range problems {
		fmt.Fprintln(stdout, p)
	}
	if len(problems) > 0 {
		return fmt.Errorf("the manifests have %s", count(len(problems), "problem"))
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// firstDifference returns the number of the first line that differs.
func firstDifference(a, b []byte) int {
	theirs := strings.Split(string(b), "\n")
	for i, line := range strings.Split(string(a), "\n") {
		if i >= len(theirs) || line != theirs[i] {
			return i + 1
		}
	}
	return strings.Count(string(a), "\n") + 1
}

// breaks returns the breaking changes since the merge base. note says why they are unknown.
func (m *manifestsRun) breaks(ctx context.Context, d *deployment) (changes []breaking.Change, note string) {
	if len(d.crds) == 0 {
		return nil, ""
	}
	base, err := mergeBase(ctx, d.path, m.against)
	if err != nil {
		return nil, fmt.Sprintf("breaking changes of definitions are not checked: %v", err)
	}
	text, err := gitOutput(ctx, d.path, "show", base+":./deploy/crd.yaml")
	if err != nil {
		return nil, "" // there were no definitions
	}
	before, err := deploy.Decode(text)
	if err != nil {
		return nil, fmt.Sprintf("breaking changes of definitions are not checked: deploy/crd.yaml of %s cannot be read: %v", base, err)
	}
	return breaking.Compare(before, d.crds), ""
}
