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

// templates are the files of a new project; "dot" begins the names of hidden ones.
//
//go:embed template
var templates embed.FS

// project is what is made of the templates.
type project struct {
	Name   string // of the operator, its folder and its image
	Module string
	Group  string
	Kind   string
	Plural string

	folder   string
	checkout string // of gopf, to be used instead of the published module; empty for that
}

func newNew() *cobra.Command {
	var p project
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Begin a new operator",
		Long: `Write a new operator into the folder NAME: a kind of objects with its definition,
handlers, tests at all levels, manifests and a Dockerfile. It builds, its tests
pass, and "gopf dev" runs it.`,
		Example: `  gopf new demo
  gopf new cert-bot --kind Certificate --group certs.example.com --module github.com/me/cert-bot`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give one name for the operator")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Name = args[0]
			if err := p.complete(); err != nil {
				return err
			}
			if err := p.write(); err != nil {
				return err
			}
			if err := p.require(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is ready. Next:\n\n  cd %s\n  make test\n  make dev\n", p.Name, p.folder)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&p.Module, "module", "", "the `path` of the Go module; default: example.com/NAME")
	flags.StringVar(&p.Group, "group", "", "the API `group` of the objects; default: NAME.example.com")
	flags.StringVar(&p.Kind, "kind", "", "the `kind` of the objects, such as Database; default: made of NAME")
	flags.StringVar(&p.checkout, "gopf", "", "the `folder` of a checkout of gopf to be used; default: the version of this command")
	return cmd
}

var (
	names  = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,50}[a-z0-9])?$`)
	kinds  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	groups = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`)
)

// complete checks what is given and fills in the rest.
func (p *project) complete() error {
	p.folder = p.Name
	p.Name = filepath.Base(p.Name)
	if !names.MatchString(p.Name) {
		return usagef("%q cannot be the name of an operator: use lower-case letters, digits and -", p.Name)
	}
	p.Module = cmp.Or(p.Module, "example.com/"+p.Name)
	p.Group = cmp.Or(p.Group, p.Name+".example.com")
	p.Kind = cmp.Or(p.Kind, camelCase(p.Name))
	if !kinds.MatchString(p.Kind) {
		return usagef("%q cannot be a kind: begin with a capital letter, and use letters and digits", p.Kind)
	}
	if !groups.MatchString(p.Group) {
		return usagef("%q cannot be an API group: use a name as of a domain, such as example.com", p.Group)
	}
	p.Plural = plural(strings.ToLower(p.Kind))
	if entries, err := os.ReadDir(p.folder); err == nil && len(entries) > 0 {
		return usagef("the folder %s exists already and is not empty", p.folder)
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
		return usagef("%s is no checkout of gopf: %w", p.checkout, err)
	}
	p.checkout = checkout
	return nil
}

// ownCheckout is the folder that this command was built in, unless it is of a
// published version.
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

// publishedVersion is empty for what was built in a checkout.
func publishedVersion(info *debug.BuildInfo) string {
	if v := info.Main.Version; strings.HasPrefix(v, "v") && !strings.Contains(v, "-0.") && !strings.Contains(v, "+dirty") {
		return v
	}
	return ""
}

// camelCase makes a kind of a name: "cert-bot" is "CertBot".
func camelCase(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// plural is the usual English one.
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

// write makes the files of the templates.
func (p *project) write() error {
	return fs.WalkDir(templates, "template", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := templates.ReadFile(path)
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
		name := strings.TrimSuffix(strings.TrimPrefix(path, "template/"), ".tmpl")
		if hidden, ok := strings.CutPrefix(name, "dot"); ok {
			name = "." + hidden
		}
		file := filepath.Join(p.folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, text.Bytes(), 0o644)
	})
}

// require writes go.mod and go.sum.
func (p *project) require(ctx context.Context) error {
	version := "latest"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(publishedVersion(info), version)
	}
	mod := fmt.Sprintf("module %s\n\ngo 1.26\n\ntool gopf.dev/gopf/cmd/gopf\n", p.Module)
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
		return fmt.Errorf("find the modules that the project needs: %w\n%s", err, out)
	}
	return nil
}

// requireCheckout uses the modules that gopf's own tests use, so that nothing needs
// to be downloaded that is there.
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
	// What is not needed may stay if it cannot be found out.
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
