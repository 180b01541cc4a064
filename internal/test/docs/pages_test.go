// Package docs keeps the manual true: its code compiles, its manifests and
// command lines are understood, its links lead somewhere, and what it says about
// settings, tests and names is so.
//
// # Code in pages
//
// Every block of the language go in docs/, in the README.md of the root and in
// those of examples is type-checked. A block is
//
//   - a whole file, if it begins with "package",
//   - else declarations,
//   - else statements, as they are in a function that returns an error.
//
// A block knows what the blocks before it on the page have declared, and what is
// in testdata/names.go and testdata/PAGE.go; what it declares itself goes first.
// Where a block has no imports, the usual packages are imported by their usual
// names. A block of the language "go controller-runtime" is only parsed, because
// that is no dependency of ours. The code of docs/tutorial.md is also compiled as the
// project of a reader, chapter by chapter. Blocks of docs/admission.md that declare handlers
// also review requests, on a cluster in memory.
package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// page is a page of the manual.
type page struct {
	path   string // from the root, with slashes
	text   string
	prose  string // the text without fenced blocks
	blocks []block
}

// name is what files for the page are called after.
func (p *page) name() string { return strings.TrimSuffix(filepath.Base(p.path), ".md") }

// block is a fenced block of a page.
type block struct {
	language string // all of the line after the fence
	line     int    // of the first line inside
	text     string
}

// pages reads all pages.
func pages(t *testing.T) []*page {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"README.md", "docs/*.md", "examples/README.md", "examples/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) < 8 {
		t.Fatalf("only these pages are found: %v", paths)
	}
	var all []*page
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		p := &page{path: filepath.ToSlash(rel), text: string(raw)}
		p.blocks, p.prose = blocksOf(p.text), proseOf(p.text)
		all = append(all, p)
	}
	return all
}

// readPage reads one page of the manual.
func readPage(t *testing.T, path string) *page {
	t.Helper()
	all := pages(t)
	i := slices.IndexFunc(all, func(p *page) bool { return p.path == path })
	if i < 0 {
		t.Fatalf("there is no page %s", path)
	}
	return all[i]
}

// blocksOf finds the fenced blocks of a text.
func blocksOf(text string) []block {
	var blocks []block
	var open *block
	number := 0
	for line := range strings.Lines(text) {
		number++
		trimmed := strings.TrimSpace(line)
		switch {
		case open == nil && strings.HasPrefix(trimmed, "```"):
			open = &block{language: strings.TrimPrefix(trimmed, "```"), line: number + 1}
		case open != nil && trimmed == "```":
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line
		}
	}
	return blocks
}

// proseOf is a text without its fenced blocks; lines stay where they are.
func proseOf(text string) string {
	var prose strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			line = "\n"
		}
		if fenced {
			line = "\n"
		}
		prose.WriteString(line)
	}
	return prose.String()
}
