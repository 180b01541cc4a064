package main

import (
	"os"
	"path/filepath"
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
		if got := judge(t.Context(), tests, m, filepath.Join(t.TempDir(), "0"), true, time.Minute); got != want {
			t.Errorf("a %s b: got the verdict %d, want %d", text, got, want)
		}
	}
}
