package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
)

// templates are the files of a new project. The names of hidden files begin with "dot".
//
//go:embed template
var templates embed.FS

// project contains the values for the templates.
type project struct {
	Name   string // of the operator, its folder and its image
	Module string
	Group  string
	Kind   string
	Plural string

	folder   string
	checkout string // folder with gopf's sources to use; empty means the published module
	with     []string
	git      bool
}

// Unreleased reports whether the project uses a checkout of gopf, because there is no
// published version.
func (p *project) Unreleased() bool { return p.checkout != "" }

// Identity returns the name of the operator in the cluster: the API group. The prefix
// "kopf." belongs to Kopf, so such a group gets the name of the operator as its prefix.
func (p *project) Identity() string {
	if !strings.HasPrefix(p.Group, "kopf.") {
		return p.Group
	}
	if p.Name == "kopf" {
		return "operator." + p.Group
	}
	return p.Name + "." + p.Group
}

// StateKey returns the key in the status for the state of the operator: the first label of
// the identity. Fields and handlers of the template must not have the same name.
func (p *project) StateKey() string {
	key, _, _ := strings.Cut(p.Identity(), ".")
	switch key {
	case "message", "hours", "greet", "farewell", "age", "children", "conditions", "polite":
		return key + "-operator"
	}
	return key
}

// Singular returns the name of one object in commands of kubectl.
func (p *project) Singular() string { return strings.ToLower(p.Kind) }

func newNew() *cobra.Command {
	var p project
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a project for a new operator",
		Long: `Create a project for a new operator in the folder NAME. It has a custom resource
definition, handlers, tests at all levels, manifests and a Dockerfile, a CI file, the
configurations of a linter and of debuggers, and AGENTS.md. The project builds, its tests
pass, and "gopf dev" runs it. In its Deployment, health, metrics and leader election are on.

The flag --with chooses the content. The variants children and admission can be combined:

  typed      a custom resource with a Go type and handlers; this is the default
  minimal    one handler for ConfigMaps in main.go, without a custom resource
  children   typed, and a reconcile handler that declares a child of each object
  admission  typed, and an admission handler that validates objects
  yaml       an operator that is a YAML file, with a program as a handler and YAML tests;
             no Go code; see "gopf serve"

"gopf add" adds kinds and handlers later.`,
		Example: `  gopf new demo
  gopf new demo --with children,admission
  gopf new cert-bot --kind Certificate --group certs.example.com --module github.com/me/cert-bot`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name exactly one operator, as in 'gopf new demo'")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Name = args[0]
			if err := p.checkVariants(); err != nil {
				return err
			}
			if err := p.complete(); err != nil {
				return err
			}
			if err := p.write(); err != nil {
				return err
			}
			if err := p.writeVariants(); err != nil {
				return err
			}
			if !p.YAML() {
				if err := p.writeGo(cmd.Context()); err != nil {
					return err
				}
			}
			if err := p.initGit(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is ready. Next:\n\n  cd %s\n  make test\n  make dev\n", p.Name, p.folder)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&p.Module, "module", "", "`path` of the Go module; default: example.com/NAME")
	flags.StringVar(&p.Group, "group", "", "API `group` of the custom resource; default: NAME.example.com")
	flags.StringVar(&p.Kind, "kind", "", "`kind` of the custom resource, such as Database; default: NAME in camel case")
	flags.StringVar(&p.checkout, "gopf", "", "use gopf from this `folder` with its sources; default: the checkout or the version that this command is from")
	p.addVariantFlags(cmd)
	return cmd
}

var (
	names  = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,50}[a-z0-9])?$`)
	kinds  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	groups = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`)
)

// complete checks the input and fills in the rest.
func (p *project) complete() error {
	p.folder = p.Name
	p.Name = filepath.Base(p.Name)
	if !names.MatchString(p.Name) {
		return usagef("%q is not a valid name for an operator; use lower-case letters, digits and -", p.Name)
	}
	p.Module = cmp.Or(p.Module, "example.com/"+p.Name)
	p.Group = cmp.Or(p.Group, p.Name+".example.com")
	p.Kind = cmp.Or(p.Kind, camelCase(p.Name))
	if !kinds.MatchString(p.Kind) {
		return usagef("%q is not a valid kind; use letters and digits, and begin with a capital letter", p.Kind)
	}
	if !groups.MatchString(p.Group) {
		return usagef("%q is not a valid API group; use a domain name, such as example.com", p.Group)
	}
	p.Plural = plural(strings.ToLower(p.Kind))
	if entries, err := os.ReadDir(p.folder); err == nil && len(entries) > 0 {
		return usagef("the folder %s already exists and is not empty; choose another name or remove it", p.folder)
	}
	if p.checkout == "" {
		p.checkout = ownCheckout()
	}
	if p.checkout == "" {
		return nil
	}
	checkout, err := filepath.Abs(p.checkout)
	if err == nil {
		_, err = os.Stat(filepath.Join(checkout, "gopftest", "go.mod"))
	}
	if err != nil {
		return usagef("--gopf: %s does not contain the sources of gopf: %w", p.checkout, err)
	}
	p.checkout = checkout
	return nil
}

// ownCheckout returns the folder in which this command was built. An empty string means
// that it is a published version, or that the folder is gone.
func ownCheckout() string {
	if info, ok := debug.ReadBuildInfo(); ok && publishedVersion(info) != "" {
		return ""
	}
	_, file, _, ok := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if _, err := os.Stat(filepath.Join(root, "gopftest", "go.mod")); !ok || err != nil {
		return ""
	}
	return root
}

// pseudoVersions are the versions that Go derives from a commit without a tag.
var pseudoVersions = regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}$`)

// publishedVersion returns the version of the command. An empty string means that it was
// built from a checkout. In a clean checkout of a commit without a tag, Go derives the version
// from the commit, and no module proxy has it. Only a downloaded module has a checksum.
func publishedVersion(info *debug.BuildInfo) string {
	v := info.Main.Version
	if !strings.HasPrefix(v, "v") || strings.Contains(v, "-0.") || strings.Contains(v, "+dirty") {
		return ""
	}
	if info.Main.Sum == "" && pseudoVersions.MatchString(v) {
		return ""
	}
	return v
}

// camelCase converts a name to a kind: "cert-bot" becomes "CertBot".
func camelCase(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// plural returns the usual English plural.
func plural(word string) string {
	for _, end := range []string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(word, end) {
			return word + "es"
		}
	}
	if stem, ok := strings.CutSuffix(word, "y"); ok && stem != "" && !strings.ContainsRune("aeiou", rune(stem[len(stem)-1])) {
		return stem + "ies"
	}
	return word + "s"
}

// write creates the files of the project from the templates.
func (p *project) write() error { return p.writeFrom(templates, "template") }

// writeFrom creates files from the templates in a folder.
func (p *project) writeFrom(files embed.FS, root string) error {
	return fs.WalkDir(files, root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || root == "template" && p.skips(strings.TrimSuffix(strings.TrimPrefix(path, "template/"), ".tmpl")) {
			return err
		}
		raw, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		t, err := template.New(path).Delims("[[", "]]").Option("missingkey=error").Parse(string(raw))
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := t.Execute(&text, p); err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, root+"/"), ".tmpl")
		if hidden, ok := strings.CutPrefix(name, "dot"); ok {
			name = "." + hidden
		}
		file := filepath.Join(p.folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		return os.WriteFile(file, text.Bytes(), mode)
	})
}

// writeGo creates the files of a Go module: its manifests, go.mod and go.sum.
func (p *project) writeGo(ctx context.Context) error {
	if err := p.writeManifests(); err != nil {
		return err
	}
	if err := p.require(ctx); err != nil {
		return err
	}
	if !p.Unreleased() {
		return nil
	}
	return writeProxy(p.checkout, filepath.Join(p.folder, proxyFolder))
}

// require writes go.mod and go.sum.
func (p *project) require(ctx context.Context) error {
	version := "latest"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(publishedVersion(info), version)
	}
	mod := fmt.Sprintf("module %s\n\ngo 1.26\n", p.Module)
	if p.checkout != "" {
		return p.requireCheckout(ctx, mod)
	}
	if err := os.WriteFile(filepath.Join(p.folder, "go.mod"), []byte(mod), 0o644); err != nil {
		return err
	}
	if out, err := p.run(ctx, "go", "get", "gopf.dev/gopf@"+version, "gopf.dev/gopf/gopftest@"+version); err != nil {
		return fmt.Errorf("get gopf %s: %w\n%s", version, err, out)
	}
	if out, err := p.run(ctx, "go", "mod", "tidy"); err != nil {
		return fmt.Errorf("resolve the dependencies of the project: %w\n%s", err, out)
	}
	return nil
}

// requireCheckout uses the same dependencies as gopf's own tests, so nothing is downloaded
// that is already in the module cache.
func (p *project) requireCheckout(ctx context.Context, mod string) error {
	nested := filepath.Join(p.checkout, "gopftest")
	theirs, err := os.ReadFile(filepath.Join(nested, "go.mod"))
	if err != nil {
		return err
	}
	mod += fmt.Sprintf("\nrequire gopf.dev/gopf/gopftest v0.0.0\n\nreplace (\n\tgopf.dev/gopf => %q\n\tgopf.dev/gopf/gopftest => %q\n)\n", p.checkout, nested)
	for line := range strings.Lines(string(theirs)) {
		if first := strings.Fields(line); len(first) == 0 || first[0] != "module" && first[0] != "go" && first[0] != "replace" {
			mod += line
		}
	}
	files := map[string][]byte{"go.mod": []byte(mod)}
	for _, folder := range []string{nested, p.checkout} {
		sums, err := os.ReadFile(filepath.Join(folder, "go.sum"))
		if err != nil {
			return err
		}
		files["go.sum"] = append(files["go.sum"], sums...)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(p.folder, name), content, 0o644); err != nil {
			return err
		}
	}
	// If tidy fails, for example offline, unneeded dependencies may stay.
	if _, err := p.run(ctx, "go", "mod", "tidy"); err != nil {
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(p.folder, name), content, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *project) run(ctx context.Context, command string, args ...string) (output []byte, err error) {
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir = p.folder
	return cmd.CombinedOutput()
}
