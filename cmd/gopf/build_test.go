package main

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSplitArgsSeparatesPackagesFromFlags(t *testing.T) {
	type split struct{ Packages, Flags []string }
	cases := map[string]split{
		"./a":                {[]string{"./a"}, []string{}},
		"./a b -n x ./c":     {[]string{"./a", "b"}, []string{"-n", "x", "./c"}},
		"./a -- -n x":        {[]string{"./a"}, []string{"-n", "x"}},
		"./a -v -- y":        {[]string{"./a"}, []string{"-v", "--", "y"}},
		"./a --help":         {[]string{"./a"}, []string{"--help"}},
		"--help":             {},
		"-h":                 {},
		"handlers.go -A -d ": {[]string{"handlers.go"}, []string{"-A", "-d"}},
	}
	for line, want := range cases {
		packages, flags, err := splitArgs(strings.Fields(line))
		if diff := cmp.Diff(want, split{packages, flags}); diff != "" || err != nil {
			t.Errorf("%q: %v, -want +got\n%s", line, err, diff)
		}
	}
}

func TestTheMainFunctionCanImportAllPackages(t *testing.T) {
	const module = "/m"
	cases := map[string]struct {
		dirs []string
		want string
	}{
		"anywhere":             {[]string{"/m/a", "/m/b"}, "/m"},
		"the module itself":    {[]string{"/m"}, "/m"},
		"internal":             {[]string{"/m/internal/a"}, "/m"},
		"deep internal":        {[]string{"/m/a/internal/b/c", "/m/d"}, "/m/a"},
		"internal in internal": {[]string{"/m/internal/a/internal/b", "/m/internal/c"}, "/m/internal/a"},
		"another module":       {[]string{"/other/a/internal/b"}, "/m"},
		"not quite internal":   {[]string{"/m/a/internals/b"}, "/m"},
	}
	for name, c := range cases {
		var packages []*goPackage
		for _, dir := range c.dirs {
			packages = append(packages, &goPackage{Dir: filepath.FromSlash(dir)})
		}
		if got, want := neighbor(filepath.FromSlash(module), packages), filepath.Join(filepath.FromSlash(c.want), "gopf-run-main"); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestTheMainFunctionIsValidGo(t *testing.T) {
	at := &token.Position{Filename: "/m/a/a.go", Line: 7}
	text := mainFile([]*goPackage{{Name: "a", ImportPath: "example.com/m/a", register: at}, {Name: "b", ImportPath: "example.com/m/b", register: at}})
	if _, err := parser.ParseFile(token.NewFileSet(), "main.go", text, parser.AllErrors); err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
	a, b := strings.Index(string(text), "gopfRun0.Register(op)"), strings.Index(string(text), "gopfRun1.Register(op)")
	if a < 0 || b < a {
		t.Errorf("the packages are not called in order:\n%s", text)
	}
}

func TestExecutablesAreNamedLikeByGoBuild(t *testing.T) {
	for path, want := range map[string]string{"example.com/op": "op", "example.com/op/v2": "op", "op": "op", "example.com/v2x": "v2x"} {
		if got := strings.TrimSuffix(executableName(&goPackage{ImportPath: path}), ".exe"); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestVendoredModulesGetAdvice(t *testing.T) {
	const output = "gopf-run-main/main.go:7:2: cannot find module providing package gopf.dev/gopf/cli: import lookup disabled by -mod=vendor"
	if got := advice(output); !strings.Contains(got, "go mod vendor") {
		t.Errorf("got %q", got)
	}
	if got := advice("undefined: x"); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestOnlyLongWorkPrintsAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for took, want := range map[time.Duration]string{time.Second: "", time.Minute: "Building.\n"} {
			var said strings.Builder
			over := patiently(&said, 3*time.Second, "Building.")
			time.Sleep(took)
			over()
			over()
			if said.String() != want {
				t.Errorf("after %v: %q", took, said.String())
			}
		}
	})
}

func TestMessagesNameTheFolder(t *testing.T) {
	for given, want := range map[string]string{".": "this folder", "./demo": "./demo"} {
		if got := (&build{given: given}).where(); got != want {
			t.Errorf("%s: got %q, want %q", given, got, want)
		}
	}
}
