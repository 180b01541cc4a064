package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOnlyYAMLFilesAreOperatorFiles(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]bool{"operator.yaml": true, "operator.yml": true, "main.go": false} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if isOperatorFile(path) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
	if isOperatorFile(dir) || isOperatorFile(filepath.Join(dir, "none.yaml")) {
		t.Error("a folder or a missing file counts")
	}
}
