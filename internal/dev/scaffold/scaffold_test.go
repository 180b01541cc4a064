package scaffold

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// project writes the operator of testdata into a new folder.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"types.go", "operator.go"} {
		text, err := os.ReadFile("testdata/operator/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, string(text))
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// files returns the contents of all files.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		all[e.Name()] = read(t, dir, e.Name())
	}
	return all
}

func add(t *testing.T, dir string, h Handler) {
	t.Helper()
	p, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.AddHandler(h)
	if err == nil {
		err = c.Write()
	}
	if err != nil {
		t.Fatalf("%+v: %v", h, err)
	}
}

func TestEverythingThatIsAddedCompilesAndPassesItsTests(t *testing.T) {
	dir := project(t)
	for _, kind := range Types {
		h := Handler{Type: kind, Name: "my-" + kind, Every: 90 * time.Second}
		if kind == "field" {
			h.Field = "spec.size"
		}
		add(t, dir, h)
	}
	p, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.AddKind(Kind{Name: "Backup", Group: "example.com", Version: "v1", Plural: "backups"})
	if err == nil {
		err = c.Write()
	}
	if err != nil {
		t.Fatal(err)
	}
	add(t, dir, Handler{Type: "delete", Name: "delete", Kind: "Backup"})
	code := read(t, dir, "operator.go")
	for _, want := range []string{
		"\tdbs.OnCreate(\"provision\", provision)     // keep this comment\n\tdbs.OnCreate(\"my-create\", myCreate)\n\tdbs.OnUpdate(\"my-update\", myUpdate)\n",
		"\tdbs.OnField(\"my-field\", \"spec.size\", myField)\n",
		"\tdbs.Timer(\"my-timer\", myTimerInterval, myTimer)\n",
		"\tgopf.For[*Backup](op, backupResource).On(gopf.Create|gopf.Update, \"observe\", observeBackup)\n\tgopf.For[*Backup](op, backupResource).OnDelete(\"delete\", deleteObject)\n",
		"// nothing after this\n\treturn op\n",
	} {
		if !strings.Contains(code, want) {
			t.Errorf("want %s in\n%s", want, code)
		}
	}
	write(t, dir, "declared_test.go", "package main\n\nimport \"testing\"\n\nfunc TestDeclared(t *testing.T) {\n\tif err := newOperator().Err(); err != nil {\n\t\tt.Error(err)\n\t}\n}\n")
	goModule(t, dir)
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "gofmt", "-l", dir).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("not formatted: %s %v", out, err)
	}
}

// goModule writes a go.mod that uses this checkout and the same dependencies.
func goModule(t *testing.T, dir string) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	mod := fmt.Sprintf("module example.com/added\n\ngo 1.26\n\nrequire gopf.dev/gopf/gopftest v0.0.0\n\nreplace gopf.dev/gopf => %s\nreplace gopf.dev/gopf/gopftest => %s/gopftest\n", root, root)
	for line := range strings.Lines(read(t, root, "gopftest/go.mod")) {
		if !strings.HasPrefix(line, "module") && !strings.HasPrefix(line, "go ") && !strings.HasPrefix(line, "replace") {
			mod += line
		}
	}
	write(t, dir, "go.mod", mod)
	write(t, dir, "go.sum", read(t, root, "gopftest/go.sum")+read(t, root, "go.sum"))
}

func TestRefusalsSayWhyAndWriteNothing(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		h          Handler
		want       string
	}{
		"the same again":   {"", "", Handler{Type: "create", Name: "provision"}, `a handler with the id "provision" exists already: `},
		"a taken name":     {"", "", Handler{Type: "create", Name: "new-operator"}, "the name newOperator is taken: "},
		"a taken file":     {"resize.go", "package main\n", Handler{Type: "update", Name: "resize"}, "the file resize.go exists already"},
		"a taken test":     {"resize_test.go", "package main\n", Handler{Type: "update", Name: "resize"}, "the file resize_test.go exists already"},
		"an unknown kind":  {"", "", Handler{Type: "update", Name: "resize", Kind: "Databse"}, "no function of this package calls gopf.For[*Databse]; the declared kinds are Database"},
		"an invalid name":  {"", "", Handler{Type: "update", Name: "no spaces"}, `"no spaces" is not a valid name for a handler`},
		"code with errors": {"broken.go", "package main\n\nfunc {", Handler{Type: "update", Name: "resize"}, "correct this first: "},
		"several kinds":    {"other.go", otherKind("op, \"example.com/v1/others\""), Handler{Type: "update", Name: "resize"}, "there are several kinds; name one with --for: Database, Other"},
		"a computed name":  {"other.go", otherKind("op, compute()"), Handler{Type: "update", Name: "resize", Kind: "Other"}, "compute(), is not a constant of this package"},
		"a short name":     {"other.go", otherKind(`op, "others"`), Handler{Type: "update", Name: "resize", Kind: "Other"}, `the resource "others" has no group or no version`},
		"code on one line": {"other.go", strings.ReplaceAll(otherKind(`op, "example.com/v1/others"`), "{ // declare\n\t", "{ "), Handler{Type: "update", Name: "resize", Kind: "Other"}, "there is more code on this line"},
	} {
		dir := project(t)
		if c.file != "" {
			write(t, dir, c.file, c.text)
		}
		before := files(t, dir)
		p, err := Load(dir)
		if err == nil {
			_, err = p.AddHandler(c.h)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		if !maps.Equal(before, files(t, dir)) {
			t.Errorf("%s: files were changed", name)
		}
	}
	empty := t.TempDir()
	if _, err := Load(empty); err == nil || !strings.Contains(err.Error(), "there are no Go files in "+empty) {
		t.Errorf("an empty folder: %v", err)
	}
}

func otherKind(args string) string {
	return "package main\n\nimport \"gopf.dev/gopf\"\n\ntype Other struct{ Database }\n\nfunc others(op *gopf.Operator) { // declare\n\tgopf.For[*Other](" + args + ").OnCreate(\"other\", nil)\n}\n"
}

func TestLinesAreInsertedWhereAPersonWouldWriteThem(t *testing.T) {
	const kind = "type A struct{}\n"
	for name, c := range map[string]struct{ src, want string }{
		"another name of the import": {
			"package p\n\nimport framework \"gopf.dev/gopf\"\n\n" + kind + "func declare(op *framework.Operator) {\n\tas := framework.For[*A](op, \"x.com/v1/as\")\n\tas.OnCreate(\"a\", nil)\n}\n",
			"\tas.OnCreate(\"a\", nil)\n\tas.OnUpdate(\"b\", b)\n}\n",
		},
		"a main function": {
			"package main\n\nimport (\n\t\"gopf.dev/gopf\"\n\t\"gopf.dev/gopf/cli\"\n)\n\n" + kind + "func main() {\n\top := gopf.New()\n\tgopf.For[*A](op, \"x.com/v1/as\").OnCreate(\"a\", nil)\n\tcli.Main(op)\n}\n",
			"OnCreate(\"a\", nil)\n\tgopf.For[*A](op, \"x.com/v1/as\").OnUpdate(\"b\", b)\n\tcli.Main(op)\n",
		},
		"a handler in several lines": {
			"package p\n\nimport \"gopf.dev/gopf\"\n\n" + kind + "func declare(op *gopf.Operator) {\n\tas := gopf.For[*A](op, \"x.com/v1/as\")\n\tas.OnCreate(\"a\", func() {\n\t\t// inner\n\t})\n\n\t/* after */\n}\n",
			"\t})\n\tas.OnUpdate(\"b\", b)\n\n\t/* after */\n}\n",
		},
		"lines of Windows": {
			"package p\r\n\r\nimport \"gopf.dev/gopf\"\r\n\r\ntype A struct{}\r\n\r\nfunc declare(op *gopf.Operator) {\r\n\tas := gopf.For[*A](op, \"x.com/v1/as\")\r\n\t_ = as\r\n}\r\n",
			"\t_ = as\r\n\tas.OnUpdate(\"b\", b)\r\n}\r\n",
		},
		"code that is not formatted": {
			"package p\nimport \"gopf.dev/gopf\"\n" + kind + "func declare(op *gopf.Operator) {\n  as   :=  gopf.For[*A](op,\"x.com/v1/as\")\n  as.OnCreate( \"a\",nil )   // odd\n}\n",
			"  as.OnCreate( \"a\",nil )   // odd\n  as.OnUpdate(\"b\", b)\n}\n",
		},
	} {
		dir := t.TempDir()
		write(t, dir, "a.go", c.src)
		add(t, dir, Handler{Type: "update", Name: "b"})
		got := read(t, dir, "a.go")
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: want %q in\n%q", name, c.want, got)
		}
		// Without the line, the file is as before.
		lines := slices.DeleteFunc(strings.SplitAfter(got, "\n"), func(l string) bool { return strings.Contains(l, "OnUpdate(\"b\", b)") })
		if strings.Join(lines, "") != c.src {
			t.Errorf("%s: more than a line was changed:\n%s", name, got)
		}
	}
}

func TestAFailedWriteLeavesNothing(t *testing.T) {
	dir := project(t)
	p, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.AddHandler(Handler{Type: "update", Name: "resize"})
	if err != nil {
		t.Fatal(err)
	}
	// Another program changes the file after it was read.
	write(t, dir, "operator.go", read(t, dir, "operator.go")+"\n// edited\n")
	before := files(t, dir)
	if err := c.Write(); err == nil || !strings.Contains(err.Error(), "operator.go was changed in the meantime; run the command again") {
		t.Errorf("got %v", err)
	}
	if !maps.Equal(before, files(t, dir)) {
		t.Errorf("files were written: %v", slices.Sorted(maps.Keys(files(t, dir))))
	}
}
