package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// release is one run of the command.
type release struct {
	repository string
	modules    []string // folders of modules; the first is the root
	command    string   // the folder of the command that users install, in the root module
	starter    []string // arguments with which the command creates a project in its folder "demo"; may be empty
	tools      string   // the go.mod file that pins apidiff
	version    string
	dry        bool
	out        io.Writer

	work  string // a folder that is removed at the end
	clone string // of the repository, with the commit and the tags of the release
}

var versionForm = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// run makes the release in a clone, checks it, and copies its commit and tags.
func (r *release) run(ctx context.Context) error {
	if !versionForm.MatchString(r.version) {
		return fmt.Errorf("%q is not a version; use the form v1.2.3", r.version)
	}
	if err := r.checkRepository(ctx); err != nil {
		return err
	}
	var err error
	if r.work, err = os.MkdirTemp("", "gopf-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	r.clone = filepath.Join(r.work, "clone")
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"clone the repository", r.cloneRepository},
		{"compare the API with the previous release", r.compareAPI},
		{"set the version in nested modules, and commit", r.commit},
		{"tag all modules", r.tag},
		{"install the command from a local module proxy", r.install},
	} {
		fmt.Fprintln(r.out, "==", step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	if r.dry {
		fmt.Fprintln(r.out, "== dry run: everything passed, and nothing was changed")
		return nil
	}
	if err := r.copyBack(ctx); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "== tagged %s; nothing was pushed. To publish it:\n   git push --atomic origin %s\n", r.version, strings.Join(r.tags(), " "))
	return nil
}

// tags returns the tag of each module, as the go command expects them.
func (r *release) tags() (list []string) {
	for _, folder := range r.modules {
		if folder == "." {
			list = append(list, r.version)
			continue
		}
		list = append(list, folder+"/"+r.version)
	}
	return list
}

// checkRepository refuses uncommitted changes, existing tags and a version without notes.
func (r *release) checkRepository(ctx context.Context) error {
	existing, err := git(ctx, r.repository, "tag", "--list")
	if err != nil {
		return err
	}
	for _, tag := range r.tags() {
		if slices.Contains(strings.Fields(existing), tag) {
			return fmt.Errorf("the tag %s exists", tag)
		}
	}
	changelog, err := os.ReadFile(filepath.Join(r.repository, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	changes, err := git(ctx, r.repository, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return err
	}
	var problems []error
	if !strings.Contains(string(changelog), "\n## ["+strings.TrimPrefix(r.version, "v")+"]") {
		problems = append(problems, fmt.Errorf("CHANGELOG.md has no section for %s", r.version))
	}
	if changes != "" {
		problems = append(problems, fmt.Errorf("there are uncommitted changes:\n%s", changes))
	}
	if r.dry {
		for _, p := range problems {
			fmt.Fprintln(r.out, "note:", p)
		}
		return nil
	}
	return errors.Join(problems...)
}

func (r *release) cloneRepository(ctx context.Context) error {
	from, err := filepath.Abs(r.repository)
	if err != nil {
		return err
	}
	_, err = git(ctx, ".", "clone", "--quiet", "--no-hardlinks", from, r.clone)
	return err
}

// commit lets nested modules require this version of the other published modules. Their
// replace directives stay for developers; users of the modules do not see them.
func (r *release) commit(ctx context.Context) error {
	var modules []string
	for _, folder := range r.modules {
		module, err := modulePath(filepath.Join(r.clone, filepath.FromSlash(folder)))
		if err != nil {
			return err
		}
		modules = append(modules, module)
	}
	changed := false
	for _, folder := range r.modules[1:] {
		file := filepath.Join(r.clone, filepath.FromSlash(folder), "go.mod")
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		edited := string(text)
		for _, module := range modules {
			edited = requireVersion(edited, module, r.version)
		}
		if edited == string(text) {
			continue
		}
		changed = true
		if err := os.WriteFile(file, []byte(edited), 0o644); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	_, err := git(ctx, r.clone, "-c", "user.name=release", "-c", "user.email=release@localhost", "commit", "--quiet", "--all", "--message", "release: "+r.version)
	return err
}

// requireVersion replaces the version of a required module in a go.mod file. Replace
// directives stay as they are.
func requireVersion(text, module, version string) string {
	line := regexp.MustCompile(`(?m)^((?:require)?[ \t]+` + regexp.QuoteMeta(module) + `[ \t]+)v[^\s]+`)
	return line.ReplaceAllString(text, "${1}"+version)
}

func (r *release) tag(ctx context.Context) error {
	for _, tag := range r.tags() {
		if _, err := git(ctx, r.clone, "-c", "user.name=release", "-c", "user.email=release@localhost", "tag", "--annotate", "--message", tag, tag); err != nil {
			return err
		}
	}
	return nil
}

// copyBack fetches the tags, with their commit, from the clone. Branches do not move.
func (r *release) copyBack(ctx context.Context) error {
	args := []string{"fetch", "--quiet", "--no-tags", r.clone}
	for _, tag := range r.tags() {
		args = append(args, "refs/tags/"+tag+":refs/tags/"+tag)
	}
	_, err := git(ctx, r.repository, args...)
	return err
}

// git runs git in a folder and returns its output.
func git(ctx context.Context, folder string, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, "git", append([]string{"-C", folder}, args...)...))
}

// output runs a command. Its error has the output of the command.
func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("%s %s: %w: %s%s", filepath.Base(cmd.Path), cmd.Args[1], err, out, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
