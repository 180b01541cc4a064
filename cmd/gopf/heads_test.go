package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Only changes that can add a package or an embedded file make gopf dev list the packages.
func TestHeadsOfFiles(t *testing.T) {
	const before = `// Package p.
package p

import (
	"fmt"
)

func f() { fmt.Println() }
`
	for _, c := range []struct {
		name, after string
		changed     bool
	}{
		{"the same", before, false},
		{"a body", before + "\nfunc g() {}\n", false},
		{"an import", "package p\n\nimport \"fmt\"\n", true},
		{"a build constraint", "//go:build linux\n\n" + before, true},
		{"an embedded file", before + "\n//go:embed b.txt\nvar b string\n", true},
		{"a syntax error in a body", before + "\nfunc g() {\n", false},
		{"a syntax error in the imports", "package p\n\nimport (\n", true},
		{"no file", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "p.go")
			write(t, path, before)
			h := headsOf([]string{folder})
			if len(h) != 1 {
				t.Fatalf("%d heads, want 1", len(h))
			}
			if c.after != "" {
				write(t, path, c.after)
			} else if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if changed := h.change([]string{path}); changed != c.changed {
				t.Errorf("changed: %v, want %v", changed, c.changed)
			}
		})
	}
	if !(heads{}).change([]string{"go.mod"}) {
		t.Error("a file that is not a Go file did not count as changed")
	}
}

// The pattern of embedded files may match a new file.
func TestHeadsWithEmbeddedFiles(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "embeds.go"), "package p\n\nimport _ \"embed\"\n\n//go:embed *.txt\nvar a string\n")
	path := filepath.Join(folder, "p.go")
	write(t, path, "package p\n")
	if h := headsOf([]string{folder}); !h.change([]string{path}) {
		t.Error("a change in a package with embedded files did not count")
	}
}

// A head that was read with an error is read as new when the error is gone.
func TestHeadsAfterAMistake(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "p.go")
	write(t, path, "package p\n\nimport (\n")
	h := headsOf([]string{folder})
	write(t, path, "package p\n\nimport \"fmt\"\n")
	if !h.change([]string{path}) {
		t.Error("the corrected imports did not count as changed")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
