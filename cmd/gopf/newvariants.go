package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gopf.dev/gopf/internal/describe"
)

// variants are the additional files of the variants of a new project, by name.
//
//go:embed variant
var variants embed.FS

// variantNames are the values of the flag --with.
var variantNames = []string{"typed", "minimal", "children", "admission", "yaml"}

// addVariantFlags adds the flags that choose the content of a new project.
func (p *project) addVariantFlags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&p.with, "with", []string{"typed"}, "`variants` of the project, separated by commas: "+strings.Join(variantNames, ", "))
	cmd.Flags().BoolVar(&p.git, "git", true, "make the project a git repository if git is installed and the folder is in none")
}

// checkVariants checks the flag --with.
func (p *project) checkVariants() error {
	for _, v := range p.with {
		if !slices.Contains(variantNames, v) {
			return usagef("--with: there is no variant %q; use %s", v, strings.Join(variantNames, ", "))
		}
	}
	switch {
	case p.Minimal() && len(p.with) > 1:
		return usagef("--with: minimal is a variant without others; use 'gopf add' later")
	case p.YAML() && len(p.with) > 1:
		return usagef("--with: yaml is a variant without others; it has no Go code")
	case p.YAML() && p.Module != "":
		return usagef("--module: the variant yaml has no Go code, so it is no module")
	}
	return nil
}

// Minimal reports whether the project has one handler in main.go and no custom resource.
func (p *project) Minimal() bool { return slices.Contains(p.with, "minimal") }

// YAML reports whether the operator is a YAML file, without Go code.
func (p *project) YAML() bool { return slices.Contains(p.with, "yaml") }

// Children reports whether the project has a reconcile handler.
func (p *project) Children() bool { return slices.Contains(p.with, "children") }

// Admission reports whether the project has an admission handler.
func (p *project) Admission() bool { return slices.Contains(p.with, "admission") }

// skips reports whether the project does not have a file of the templates.
func (p *project) skips(name string) bool {
	if p.YAML() {
		return name != "sample.yaml"
	}
	return p.Minimal() && slices.Contains([]string{"main.go", "types.go", "operator.go", "operator_test.go", "deploy/crd.yaml"}, name)
}

// writeVariants creates the files of the variants.
func (p *project) writeVariants() error {
	for _, v := range p.with {
		if v == "typed" {
			continue
		}
		if err := p.writeFrom(variants, "variant/"+v); err != nil {
			return err
		}
	}
	return nil
}

// describeVariants adds the handlers of the variants to the description of the operator.
func (p *project) describeVariants(d *describe.Operator, resource describe.Resource) {
	add := func(h describe.Handler) {
		h.Resource, h.Where = resource, p.Name+"/operator.go:1"
		d.Handlers = append(d.Handlers, h)
	}
	if p.Children() {
		configs := describe.Resource{Text: "v1/configmaps", Version: "v1", Plural: "configmaps"}
		add(describe.Handler{ID: "children", Family: describe.Reconcile, Owns: []describe.Owned{{Resource: configs}}})
	}
	if p.Admission() {
		add(describe.Handler{ID: "polite", Family: describe.Validate, Review: &describe.Review{}})
		d.Settings.Webhook, d.Settings.WebhookService, d.Settings.WebhookPort = "webhook.Service", p.Name+"-webhook", 9443
		d.Settings.WebhookSecret, d.Settings.Managed = p.Name+"-webhook-webhook", p.Managed()
	}
}

// Managed returns the name of the webhook configurations.
func (p *project) Managed() string { return "hooks." + p.Identity() }

// initGit makes the project a git repository. It does nothing if git is missing, or if the
// folder is part of a repository already.
func (p *project) initGit(ctx context.Context) error {
	if !p.git {
		return nil
	}
	if _, err := exec.LookPath("git"); err != nil {
		return nil //nolint:nilerr // git is optional
	}
	for dir, err := filepath.Abs(p.folder); err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if out, err := p.run(ctx, "git", "init", "--quiet", "--initial-branch=main"); err != nil {
		return fmt.Errorf("git init: %w\n%s", err, out)
	}
	return nil
}
