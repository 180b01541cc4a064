package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// toy returns a repository with a root module, that has a command, and a nested module that
// requires the root module.
func toy(t *testing.T) *release {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":             "module example.com/toy\n\ngo 1.26.0\n",
		"toy.go":             "package toy\n\nconst Word = \"hello\"\n",
		"cmd/toy/main.go":    "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.com/toy\"\n)\n\nfunc main() { fmt.Println(toy.Word) }\n",
		"nested/go.mod":      "module example.com/toy/nested\n\ngo 1.26.0\n\nrequire example.com/toy v0.0.0\n\nreplace example.com/toy => ../\n",
		"nested/nested.go":   "package nested\n\nimport \"example.com/toy\"\n\nconst Two = toy.Word + toy.Word\n",
		"third/go.mod":       "module example.com/toy/third\n\ngo 1.26.0\n\nrequire (\n\texample.com/toy v0.0.0\n\texample.com/toy/nested v0.0.0-00010101000000-000000000000\n)\n\nreplace example.com/toy => ../\n\nreplace example.com/toy/nested => ../nested\n",
		"third/third.go":     "package third\n\nimport \"example.com/toy/nested\"\n\nconst Three = nested.Two\n",
		"unpublished/go.mod": "module example.com/toy/unpublished\n\ngo 1.26.0\n",
		"CHANGELOG.md":       "# Changelog\n\n## [0.1.0]\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "all"}} {
		if _, err := git(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	return &release{repository: dir, modules: []string{".", "nested", "third"}, command: "cmd/toy", tools: "../../../tools/go.mod", version: "v0.1.0", out: &bytes.Buffer{}}
}

func tagsIn(t *testing.T, r *release) string {
	t.Helper()
	tags, err := git(t.Context(), r.repository, "tag", "--list")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(tags, "\n", " ")
}

func TestReleaseTagsAllModulesOfACommitThatRequiresTheSameVersion(t *testing.T) {
	r := toy(t)
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tags := tagsIn(t, r); tags != "nested/v0.1.0 third/v0.1.0 v0.1.0" {
		t.Errorf("the tags are %q", tags)
	}
	definition, err := git(t.Context(), r.repository, "show", "nested/v0.1.0:nested/go.mod")
	if err != nil || !strings.Contains(definition, "require example.com/toy v0.1.0\n") || !strings.Contains(definition, "replace example.com/toy => ../") {
		t.Errorf("the nested module has %s, %v", definition, err)
	}
	definition, err = git(t.Context(), r.repository, "show", "third/v0.1.0:third/go.mod")
	if err != nil || !strings.Contains(definition, "example.com/toy v0.1.0\n") || !strings.Contains(definition, "example.com/toy/nested v0.1.0\n") {
		t.Errorf("the third module has %s, %v", definition, err)
	}
	if !strings.Contains(r.out.(*bytes.Buffer).String(), "hello") {
		t.Errorf("the installed command did not run: %s", r.out)
	}
	again := toy(t)
	again.repository = r.repository
	if err := again.run(t.Context()); err == nil || !strings.Contains(err.Error(), "the tag v0.1.0 exists") {
		t.Errorf("the second release ended with %v", err)
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	r := toy(t)
	r.dry = true
	before, err := git(t.Context(), r.repository, "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := git(t.Context(), r.repository, "rev-parse", "HEAD")
	if err != nil || before != after || tagsIn(t, r) != "" {
		t.Errorf("the commit was %s and is %s, the tags are %q, %v", before, after, tagsIn(t, r), err)
	}
}

func TestReleaseRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *release) error
		want   string
	}{
		"a version without a v":   {func(r *release) error { r.version = "0.1.0"; return nil }, "is not a version"},
		"a version without notes": {func(r *release) error { r.version = "v0.2.0"; return nil }, "CHANGELOG.md has no section for v0.2.0"},
		"uncommitted changes": {func(r *release) error {
			return os.WriteFile(filepath.Join(r.repository, "toy.go"), []byte("package toy\n"), 0o644)
		}, "uncommitted changes"},
		"a command that users cannot install": {func(r *release) error {
			text := "module example.com/toy\n\ngo 1.26.0\n\nreplace example.com/other => ./other\n"
			if err := os.WriteFile(filepath.Join(r.repository, "go.mod"), []byte(text), 0o644); err != nil {
				return err
			}
			_, err := git(t.Context(), r.repository, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-am", "replace")
			return err
		}, "replace directives"},
	} {
		r := toy(t)
		if err := c.change(r); err != nil {
			t.Fatal(err)
		}
		if err := r.run(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
		if tags := tagsIn(t, r); tags != "" {
			t.Errorf("%s: there are tags: %s", name, tags)
		}
	}
}

func TestRemovedNamesNeedANewMinorVersionBefore1(t *testing.T) {
	r := toy(t)
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"toy.go":           "package toy\n\nconst Sentence = \"hello\"\n",
		"nested/nested.go": "package nested\n\nimport \"example.com/toy\"\n\nconst Two = toy.Sentence\n",
		"cmd/toy/main.go":  "package main\n\nfunc main() {}\n",
		"CHANGELOG.md":     "# Changelog\n\n## [0.2.0]\n\n## [0.1.1]\n",
	} {
		if err := os.WriteFile(filepath.Join(r.repository, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := git(t.Context(), r.repository, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-am", "rename"); err != nil {
		t.Fatal(err)
	}
	r.version = "v0.1.1"
	if err := r.run(t.Context()); err == nil || !strings.Contains(err.Error(), "Word: removed") {
		t.Errorf("the patch version ended with %v", err)
	}
	r.version = "v0.2.0"
	if err := r.run(t.Context()); err != nil {
		t.Errorf("the minor version ended with %v", err)
	}
}

func TestWhichVersionsAllowBreaks(t *testing.T) {
	for _, c := range []struct {
		previous, next string
		want           bool
	}{
		{"v0.1.0", "v0.1.1", false}, {"v0.1.9", "v0.2.0", true}, {"v0.9.0", "v0.10.0-rc.1", true},
		{"v0.9.0", "v1.0.0", true}, {"v1.0.0", "v1.1.0", false}, {"v1.9.0", "v2.0.0", true},
	} {
		if got := allowsBreaks(c.previous, c.next); got != c.want {
			t.Errorf("%s after %s: got %v", c.next, c.previous, got)
		}
	}
	if got := before([]string{"v0.2.0", "v0.10.0", "v0.9.0", "v0.11.0-rc.1", "vX"}, "v0.11.0"); got != "v0.10.0" {
		t.Errorf("before v0.11.0 was %s", got)
	}
}

func TestModulesDoNotContainEachOther(t *testing.T) {
	tracked := []string{"go.mod", "a.go", "cmd/x/main.go", "nested/go.mod", "nested/b.go", "nested/inner/go.mod", "nested/inner/c.go", "nestedother/d.go"}
	for folder, want := range map[string][]string{
		".":      {"a.go", "cmd/x/main.go", "go.mod", "nestedother/d.go"},
		"nested": {"b.go", "go.mod"},
	} {
		if got := slices.Sorted(maps.Keys(filesOf(tracked, folder))); !slices.Equal(got, want) {
			t.Errorf("%s has %v instead of %v", folder, got, want)
		}
	}
}

func TestPublishedModulesExist(t *testing.T) {
	for _, folder := range published {
		module, err := modulePath(filepath.Join("../../..", folder))
		if want := strings.TrimSuffix("gopf.dev/gopf/"+folder, "/."); err != nil || module != want {
			t.Errorf("the module in %s is %s instead of %s, %v", folder, module, want, err)
		}
	}
}
