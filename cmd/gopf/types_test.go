package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTypesOfSeveralFilesAreWritten(t *testing.T) {
	out := filepath.Join(t.TempDir(), "types.go")
	var stderr bytes.Buffer
	args := []string{"types", "--package", "both", "--map", "spec.page", "--out", out, "../../examples/18-website/deploy/crd.yaml", "../../examples/upgrade/deploy/crd.yaml"}
	if code := run(newInterrupt(), args, &stderr, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"package both", "type Website struct", "type DBCluster struct", "map[string]any"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

func TestTypesNameTheFileThatCannotBeRead(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("a: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{broken, filepath.Join(t.TempDir(), "missing.yaml")} {
		var stderr bytes.Buffer
		if code := run(newInterrupt(), []string{"types", file}, &stderr, &stderr); code == 0 || !strings.Contains(stderr.String(), filepath.Base(file)) {
			t.Errorf("exit code %d: %s", code, &stderr)
		}
	}
}
