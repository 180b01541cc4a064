package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	framework "gopf.dev/gopf"
	"gopf.dev/gopf/internal/deploy"
	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/storage"
)

// writeManifests writes the manifests of a new project: the same files as "gopf manifests",
// without building the project. The definition comes from a template.
func (p *project) writeManifests() error {
	folder := filepath.Join(p.folder, "deploy")
	text, err := os.ReadFile(filepath.Join(folder, "crd.yaml"))
	if err != nil && !(p.Minimal() && errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	crds, err := deploy.Decode(text)
	if err != nil {
		return err
	}
	options, err := deploy.ReadOptions(filepath.Join(p.folder, deploy.OptionsFile), p.Name)
	if err != nil {
		return err
	}
	files, err := deploy.NewModel(options, p.describe(), crds).Files(nil)
	if err != nil {
		return err
	}
	return writeFiles(folder, files, io.Discard)
}

// describe returns the description of the operator in the templates. A test compares it with
// that of a built project.
func (p *project) describe() *describe.Operator {
	if p.Minimal() {
		return p.describeMinimal()
	}
	resource := describe.Resource{Group: p.Group, Version: "v1", Plural: p.Plural}
	resource.Text = strings.Join([]string{resource.Group, resource.Version, resource.Plural}, "/")
	settings := framework.New(framework.Identity(p.Identity())).Settings
	d := &describe.Operator{
		Version: describe.Version, Name: settings.Election.Name,
		State: describe.State{StatusKey: p.StateKey(), Prefixes: []string{p.Identity()}, Keys: stateKeys(settings, p.StateKey())},
		Settings: describe.Settings{
			Posting: settings.Posting.Enabled, ElectionName: settings.Election.Name, Peering: settings.Peering.Name,
			ExitSeconds: int(settings.Process.UltimateExitingTimeout / time.Second),
		},
	}
	for _, h := range [][2]string{{"greet", describe.Change}, {"farewell", describe.Change}, {"age", describe.Timer}} {
		d.Handlers = append(d.Handlers, describe.Handler{ID: h[0], Family: h[1], Resource: resource, Where: p.Name + "/operator.go:1"})
	}
	p.describeVariants(d, resource)
	return d
}

// stateKeys returns the keys of the status that the operator reads, with more of them.
func stateKeys(settings framework.Settings, more ...string) []string {
	if tracer, ok := settings.Persistence.Progress.(storage.Tracer); ok {
		traces, _ := tracer.Traces() // those of the framework always report them
		more = append(more, traces.Keys...)
	}
	slices.Sort(more)
	return slices.Compact(more)
}

// describeMinimal returns the description of the operator of the variant minimal.
func (p *project) describeMinimal() *describe.Operator {
	settings := framework.New(framework.Identity(p.Identity())).Settings
	return &describe.Operator{
		Version: describe.Version, Name: settings.Election.Name, State: describe.State{Prefixes: []string{p.Identity()}, Keys: stateKeys(settings)},
		Settings: describe.Settings{
			Posting: settings.Posting.Enabled, ElectionName: settings.Election.Name, Peering: settings.Peering.Name,
			ExitSeconds: int(settings.Process.UltimateExitingTimeout / time.Second),
		},
		Handlers: []describe.Handler{{
			ID: "greet", Family: describe.Change, Where: p.Name + "/main.go:1",
			Resource: describe.Resource{Text: "v1/configmaps", Version: "v1", Plural: "configmaps"},
		}},
	}
}
