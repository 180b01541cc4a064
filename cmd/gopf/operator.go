package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// checkFolder finds out whether there is a folder where the operator should be.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return usagef("PATH: %w: give the folder of the operator's main package", err)
	}
	if !info.IsDir() {
		return usagef("PATH: %s is not a folder: give the folder of the operator's main package, like %s", dir, filepath.Dir(dir))
	}
	return nil
}

// goCommand is a call of the go command in dir, so that dir's module counts.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd
}

// firstLine is the first line of text, or err if there is none.
func firstLine(text string, err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		return err.Error()
	}
	return line
}
