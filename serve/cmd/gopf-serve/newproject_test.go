package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestANewYAMLProjectIsCorrectAndPassesItsTests(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "cert-bot")
	cmd := exec.CommandContext(t.Context(), "go", "run", "-buildvcs=false", "./cmd/gopf", "new", folder, "--with", "yaml", "--kind", "Policy", "--git=false")
	cmd.Dir = "../../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gopf new: %v\n%s", err, out)
	}
	for _, args := range [][]string{
		{"check", filepath.Join(folder, "operator.yaml")},
		{"test", filepath.Join(folder, "operator_test.yaml")},
	} {
		var out strings.Builder
		if err := run(t.Context(), args, &out, &out); err != nil {
			t.Errorf("gopf %s: %v\n%s", args[0], err, &out)
		}
	}
	var out, log strings.Builder
	args := []string{"call", "farewell", "-f", filepath.Join(folder, "sample.yaml"), "--operator=" + filepath.Join(folder, "operator.yaml")}
	if err := run(t.Context(), args, &out, &log); err != nil || !strings.Contains(log.String(), "Farewell to world, greeted by default/sample.") {
		t.Errorf("got %v, %s, %s", err, &out, &log)
	}
}
