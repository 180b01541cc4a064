package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gopf.dev/gopf/internal/deploy"
	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/internal/dev/nested"
)

// describeLimit is the time for an operator to describe itself: it only runs declarations.
const describeLimit = 10 * time.Second

// deployment is an operator and its folder of manifests.
type deployment struct {
	path    string // of the main package
	folder  string // of the manifests
	module  string // folder of the module
	options deploy.Options
	text    []byte // the description
	model   *deploy.Model
	crds    []map[string]any // the generated definitions, or else those in the folder
	notes   []string         // for the user

	elsewhere []map[string]any // definitions that are maintained elsewhere
}

// loadDeployment builds the operator, reads its declarations, and derives the deployment from
// them. If definitions is set, it generates the custom resource definitions. Otherwise it reads
// them from the folder.
func loadDeployment(ctx context.Context, path string, definitions bool, stderr io.Writer) (*deployment, error) {
	if err := checkFolder(path); err != nil {
		return nil, err
	}
	d := &deployment{path: path, folder: filepath.Join(path, "deploy")}
	b, err := prepareBuild(ctx, []string{folderArgument(path)})
	if err != nil {
		return nil, err
	}
	d.module = b.dir
	if d.options, err = deploy.ReadOptions(filepath.Join(path, deploy.OptionsFile), strings.TrimSuffix(b.name, ".exe")); err != nil {
		return nil, usageError{err}
	}
	temp, err := os.MkdirTemp("", "gopf-manifests-")
	if err != nil {
		return nil, fmt.Errorf("create a temporary folder: %w", err)
	}
	defer os.RemoveAll(temp)
	if b.flags, err = b.buildFlags(ctx, false); err != nil {
		return nil, err
	}
	executable, err := b.into(ctx, temp, stderr)
	if err != nil {
		return nil, err
	}
	if !b.cli {
		// It would run as if it were deployed.
		return nil, usagef("the program in %s does not use package gopf.dev/gopf/cli, so its declarations cannot be read; call cli.Main, or write the manifests by hand", path)
	}
	if d.text, err = describeOperator(ctx, executable, d.options); err != nil {
		return nil, err
	}
	operator, err := describe.Parse(d.text)
	if err != nil {
		return nil, err
	}
	inFolder, err := d.existingDefinitions()
	if err != nil {
		return nil, err
	}
	var generated []map[string]any
	if definitions {
		if generated, err = d.define(ctx, operator, stderr); err != nil {
			return nil, err
		}
	}
	// Definitions that are written by hand stay as they are.
	if d.crds = generated; len(generated) == 0 {
		d.crds = inFolder
	}
	d.model = deploy.NewModel(d.options, operator, generated, append(inFolder, d.elsewhere...)...)
	d.notes = append(d.notes, d.model.Problems...)
	d.notes = append(d.notes, d.model.Undefined()...)
	return d, nil
}

// existingDefinitions returns the definitions in the folder of the manifests. It also reads
// those that are maintained elsewhere.
func (d *deployment) existingDefinitions() (inFolder []map[string]any, err error) {
	for _, file := range d.options.Definitions {
		path := filepath.Join(d.path, filepath.FromSlash(file))
		found, err := readDefinitions(path)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("%s has no custom resource definition", path)
		}
		if err != nil {
			return nil, usagef("%s: definitions: %w", deploy.OptionsFile, err)
		}
		d.elsewhere = append(d.elsewhere, found...)
	}
	paths, err := filepath.Glob(filepath.Join(d.folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	return readDefinitions(paths...)
}

// folderArgument returns the folder in a form that is not mistaken for an import path.
func folderArgument(path string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, ".") {
		return path
	}
	return "." + string(filepath.Separator) + path
}

// describeOperator runs the hidden command "describe" of an operator.
func describeOperator(ctx context.Context, executable string, options deploy.Options) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, describeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, executable, append([]string{"describe"}, options.ScopeFlags()...)...)
	cmd.Env = os.Environ()
	for name, value := range options.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	switch err := cmd.Run(); {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("describe the operator: it did not respond within %s; declare handlers in main, and connect to other systems in OnStartup", describeLimit)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("describe the operator: %w\n%s", err, strings.TrimSpace(stderr.String()))
	}
	return out.Bytes(), nil
}

// generatorRequest is the input of gopf-manifests.
type generatorRequest struct {
	Dir      string          `json:"dir"`
	Main     string          `json:"main"`
	StateKey string          `json:"stateKey,omitempty"`
	NoDocs   bool            `json:"noDocs,omitempty"`
	Types    []generatorType `json:"types"`
}

type generatorType struct {
	Package string `json:"package"`
	Name    string `json:"name"`
	Group   string `json:"group"`
	Version string `json:"version"`
	Plural  string `json:"plural"`
}

// define generates the definitions of the operator's own types. Types of other modules
// belong to other operators.
func (d *deployment) define(ctx context.Context, operator *describe.Operator, stderr io.Writer) ([]map[string]any, error) {
	main, err := filepath.Abs(d.path)
	if err != nil {
		return nil, err
	}
	r := generatorRequest{Dir: main, Main: main, StateKey: operator.State.StatusKey, NoDocs: d.options.NoDocs}
	own, err := goOutput(ctx, d.path, "list", "-m", "-f", "{{.Path}}")
	if err != nil {
		return nil, err
	}
	for _, t := range operator.Types {
		if !t.Served || t.BuiltIn || !isOwn(t.Package, string(own)) {
			continue
		}
		if t.Resource.Group == "" || t.Resource.Version == "" || t.Resource.Plural == "" {
			d.notes = append(d.notes, fmt.Sprintf("the type %s has no definition, because its resource is named %q; use GROUP/VERSION/PLURAL", t.Name, t.Resource.Text))
			continue
		}
		r.Types = append(r.Types, generatorType{Package: t.Package, Name: t.Name, Group: t.Resource.Group, Version: t.Resource.Version, Plural: t.Resource.Plural})
	}
	if len(r.Types) == 0 {
		return nil, nil
	}
	generator, err := nested.Build(ctx, "gopf-manifests", stderr)
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, generator)
	cmd.Dir = d.path
	var out, problem bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &problem
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("generate the definitions: %s", strings.TrimPrefix(strings.TrimSpace(problem.String()), "Error: "))
	}
	var crds []map[string]any
	if err := json.Unmarshal(out.Bytes(), &crds); err != nil {
		return nil, fmt.Errorf("read the generated definitions: %w", err)
	}
	return crds, nil
}

// isOwn reports whether the package belongs to one of the modules, one per line.
func isOwn(pkg, modules string) bool {
	if pkg == "main" {
		return true
	}
	for _, module := range strings.Fields(modules) {
		if pkg == module || strings.HasPrefix(pkg, module+"/") {
			return true
		}
	}
	return false
}

// readDefinitions reads the definitions in manifests.
func readDefinitions(paths ...string) (crds []map[string]any, err error) {
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all, err := deploy.Decode(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		for _, o := range all {
			if o["kind"] == "CustomResourceDefinition" {
				crds = append(crds, o)
			}
		}
	}
	return crds, nil
}

// tell prints the notes for the user.
func (d *deployment) tell(stderr io.Writer) {
	for _, n := range d.notes {
		fmt.Fprintf(stderr, "Note: %s\n", n)
	}
}
