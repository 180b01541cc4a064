package main

import (
	"bytes"
	"crypto/sha256"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
)

// heads are the beginnings of Go files, by their paths. They decide about the packages of an
// operator.
type heads map[string]head

// head identifies the build constraints and the imports of a file.
type head struct {
	sum    [sha256.Size]byte
	embeds bool // the file embeds others, which can be added without a change of the pattern
}

// headsOf returns the heads of all Go files in the folders.
func headsOf(folders []string) heads {
	all := heads{}
	for _, folder := range folders {
		entries, _ := os.ReadDir(folder) // a folder that cannot be read has no known files
		for _, e := range entries {
			if isSource(e.Name()) {
				all.change([]string{filepath.Join(folder, e.Name())})
			}
		}
	}
	return all
}

// change reads the files again, and reports whether the packages and the files of the operator
// may be others than before: a file is new, was deleted, is not a Go file or has another head,
// or some file embeds others.
func (h heads) change(paths []string) bool {
	changed := false
	for _, path := range paths {
		head, ok := headOf(path)
		known, before := h[path]
		if h[path] = head; !ok {
			delete(h, path)
		}
		changed = changed || !ok || !before || known != head
	}
	for _, head := range h {
		changed = changed || head.embeds
	}
	return changed
}

func headOf(path string) (h head, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil || !isSource(filepath.Base(path)) {
		return h, false
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.ImportsOnly)
	if err != nil {
		return h, false
	}
	end := file.Name.End()
	for _, d := range file.Decls {
		end = d.End()
	}
	return head{sha256.Sum256(text[:files.Position(end).Offset]), bytes.Contains(text, []byte("\n//go:embed"))}, true
}
