package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestVerdictsTellMutantsThatDoNotCompileFromThoseThatTestsNotice(t *testing.T) {
	folder := t.TempDir()
	const source = "package p\n\nfunc sum(a, b int) int { return a + b }\n"
	for name, text := range map[string]string{
		"go.mod":    "module p\n\ngo 1.26\n",
		"p.go":      source,
		"p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif sum(2, 0) != 2 {\n\t\tt.Error(\"wrong\")\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := strings.Index(source, "+")
	for text, want := range map[string]verdict{"*": dead, "-": survivor, "&&": unmade} {
		m := mutant{file: filepath.Join(folder, "p.go"), start: at, end: at + 1, from: "+", to: text}
		tests := target{pkg: ".", tests: []testPackage{{folder, "."}}}
		if got := judge(t.Context(), tests, m, filepath.Join(t.TempDir(), "0"), time.Minute); got != want {
			t.Errorf("a %s b: got the verdict %d, want %d", text, got, want)
		}
	}
}

func TestOnlyTestsThatReachAMutantRun(t *testing.T) {
	all := target{pkg: "./p", tests: []testPackage{{".", "./p"}, {".", "./far"}, {"nested", "./q"}}}
	reached := []coverage{{}, {}, {}}
	for i, profile := range []string{"example.com/p/p.go:1.1,9.9 1 1", "example.com/p/p.go:1.1,9.9 1 0", "example.com/p/p.go:1.1,4.9 1 0\nexample.com/p/p.go:5.1,9.9 1 1"} {
		reached[i].read(profile)
	}
	for line, want := range map[int][]testPackage{3: {{".", "./p"}}, 7: {{".", "./p"}, {"nested", "./q"}}} {
		if got := all.reaching(mutant{file: "p.go", line: line, col: 5}, "example.com/p", reached); !slices.Equal(got.tests, want) || got.pkg != all.pkg {
			t.Errorf("line %d: got %v, want %v", line, got, want)
		}
	}
}
