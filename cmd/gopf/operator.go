package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// checkFolder checks that the folder of the operator exists.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return usagef("PATH: %w; name the folder of the operator's main package", err)
	}
	if !info.IsDir() {
		return usagef("PATH: %s is not a folder; name the folder of the operator's main package, for example %s", dir, filepath.Dir(dir))
	}
	return nil
}

// goCommand returns a go command that runs in dir, and thus in the module of dir.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd
}

// firstLine returns the first line of text, or the text of err if there is none.
func firstLine(text string, err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		return err.Error()
	}
	return line
}
