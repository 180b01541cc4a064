package migrate

import (
	"fmt"
	"go/parser"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// operators returns the Python operators of testdata by name. They have the decorators,
// arguments and habits of real ones. constants.py is imported by another file.
func operators(t *testing.T) map[string][]Source {
	t.Helper()
	files, err := filepath.Glob("testdata/*.py")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]Source{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".py")
		if name == "constants" {
			name = "database_clusters"
		}
		all[name] = append(all[name], Source{filepath.Base(f), string(text)})
	}
	if len(all) != 20 {
		t.Errorf("there are %d operators, want 20", len(all))
	}
	return all
}

// skeletons writes the skeletons of all operators into the folders of one module.
func skeletons(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	mod := fmt.Sprintf("module example.com/skeletons\n\ngo 1.26\n\nrequire gopf.dev/gopf/gopftest v0.0.0\n\nreplace gopf.dev/gopf => %s\nreplace gopf.dev/gopf/gopftest => %s/gopftest\n", root, root)
	nested, err := os.ReadFile(root + "/gopftest/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(nested)) {
		if !strings.HasPrefix(line, "module") && !strings.HasPrefix(line, "go ") && !strings.HasPrefix(line, "replace") {
			mod += line
		}
	}
	sums := ""
	for _, f := range []string{"/gopftest/go.sum", "/go.sum"} {
		text, err := os.ReadFile(root + f)
		if err != nil {
			t.Fatal(err)
		}
		sums += string(text)
	}
	write(t, dir, map[string][]byte{"go.mod": []byte(mod), "go.sum": []byte(sums)})
	for name, sources := range operators(t) {
		r, err := Kopf(sources, name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		write(t, filepath.Join(dir, name), r.Files)
	}
	return dir
}

func write(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func run(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestSkeletonsCompileAndTakeOver(t *testing.T) {
	dir := skeletons(t)
	if out, err := run(t, dir, "vet", "./..."); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := run(t, dir, "test", "./column_store", "./private_cloud"); err != nil {
		t.Errorf("the tests of skeletons fail: %v\n%s", err, out)
	}
	// An id that differs from the one of the Python operator.
	file := filepath.Join(dir, "column_store", "operator.go")
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(code), `"create_cluster"`, `"createCluster"`, 1)
	if other == string(code) {
		t.Fatalf("the id is missing:\n%s", code)
	}
	write(t, filepath.Dir(file), map[string][]byte{"operator.go": []byte(other)})
	if out, err := run(t, dir, "test", "./column_store"); err == nil || !strings.Contains(out, "a record of Kopf is not found: [createCluster]") {
		t.Errorf("the tests pass with another id: %v\n%s", err, out)
	}
}

func TestMostOfTheDecoratorsAreTranslated(t *testing.T) {
	sum := &Report{}
	for name, sources := range operators(t) {
		r, err := Kopf(sources, name)
		if err != nil {
			t.Fatal(err)
		}
		p := r.Report
		sum.Decorators, sum.Translated = sum.Decorators+p.Decorators, sum.Translated+p.Translated
		sum.Keywords, sum.Kept = sum.Keywords+p.Keywords, sum.Kept+p.Kept
		sum.Arguments, sum.Mapped = sum.Arguments+p.Arguments, sum.Mapped+p.Mapped
		sum.Settings, sum.Set = sum.Settings+p.Settings, sum.Set+p.Set
		sum.Bodies, sum.Whole = sum.Bodies+p.Bodies, sum.Whole+p.Whole
		sum.Statements, sum.Idioms = sum.Statements+p.Statements, sum.Idioms+p.Idioms
		if len(p.Left) == 0 && p.Translated != p.Decorators {
			t.Errorf("%s: %d of %d decorators are translated, but nothing is left", name, p.Translated, p.Decorators)
		}
		if !strings.Contains(string(r.Files["MIGRATION.md"]), "## Handlers") {
			t.Errorf("%s: the report has no handlers:\n%s", name, r.Files["MIGRATION.md"])
		}
	}
	t.Log("\n" + sum.Rates())
	if sum.Translated*100 < 90*sum.Decorators || sum.Mapped != sum.Arguments || sum.Idioms*2 < sum.Statements {
		t.Errorf("too little is translated:\n%s", sum.Rates())
	}
}

var suggestion = regexp.MustCompile(`(?m)^\t//\t→ (.*)$`)

// Go code in comments is for people to uncomment, so it must be Go.
func TestGoCodeInCommentsIsValid(t *testing.T) {
	count := 0
	for name, sources := range operators(t) {
		r, err := Kopf(sources, name)
		if err != nil {
			t.Fatal(err)
		}
		for file, content := range r.Files {
			var lines []string
			for _, m := range suggestion.FindAllStringSubmatch(string(content), -1) {
				lines = append(lines, m[1])
			}
			count += len(lines)
			if _, err := parser.ParseExpr("func() error {\n" + strings.Join(lines, "\n") + "\n}"); err != nil {
				t.Errorf("%s/%s: %v\n%s", name, file, err, strings.Join(lines, "\n"))
			}
		}
	}
	if count < 20 {
		t.Errorf("there are only %d lines", count)
	}
}

// ids returns the stored ids of all handlers.
func ids(t *testing.T, src string) (all []string) {
	t.Helper()
	r, err := Kopf([]Source{{"main.py", src}}, "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]*)` \\|").FindAllStringSubmatch(string(r.Files["MIGRATION.md"]), -1) {
		all = append(all, m[1])
	}
	return all
}

func TestIDsAreThoseOfKopf(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		want []string
	}{
		"the name of the function": {"@kopf.on.create('a.com', 'v1', 'as')\ndef create_fn(**_): pass", []string{"create_fn"}},
		"an explicit id":           {"ID = 'x'\n@kopf.on.create('a.com', 'v1', 'as', id=f'{ID}-y')\ndef create_fn(**_): pass", []string{"x-y"}},
		"a field":                  {"@kopf.on.update('as', field='spec.x')\ndef f(**_): pass", []string{"f/spec.x"}},
		"a list of keys":           {"@kopf.on.field('as', field=['spec', 'x'], id='g')\ndef f(**_): pass", []string{"g/spec.x"}},
		"a timer with a field":     {"@kopf.timer('as', interval=1, field='spec.x')\ndef f(**_): pass", []string{"f/spec.x"}},
		"an index with a field":    {"@kopf.index('as', field='spec.x')\ndef f(**_): pass", []string{"f"}},
		"a method":                 {"class C:\n  class D:\n    @kopf.on.create('as')\n    def f(self, **_): pass", []string{"C.D.f"}},
		"a nested function":        {"def f():\n  @kopf.on.create('as')\n  def g(**_): pass", []string{"f.<locals>.g"}},
		"a call":                   {"def f(**_): pass\nkopf.on.create('as')(f)", []string{"f"}},
		"several reasons":          {"@kopf.on.create('as')\n@kopf.on.resume('as')\n@kopf.on.update('as', field='spec')\ndef f(**_): pass", []string{"f/spec", "f"}},
	} {
		if got := ids(t, "import kopf\n"+c.src+"\n"); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestNamesOfKopfAreFoundUnderAnyName(t *testing.T) {
	for _, src := range []string{
		"import kopf\n@kopf.on.create('as')", "import kopf as k\n@k.on.create('as')", "from kopf import on\n@on.create('as')",
		"from kopf import on as o\n@o.create('as')", "from kopf.on import create\n@create('as')", "import kopf.on as o\n@o.create('as')",
		"try:\n  import kopf\nexcept ImportError:\n  pass\n@kopf.on.create('as')",
	} {
		if got := ids(t, src+"\nasync def f(**_): pass\n"); !slices.Equal(got, []string{"f"}) {
			t.Errorf("%s: got %v", src, got)
		}
	}
}
