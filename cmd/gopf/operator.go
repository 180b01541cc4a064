package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// checkOperator finds out whether the folder has a main package.
func checkOperator(ctx context.Context, dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return usagef("PATH: %w: give the folder of the operator's main package", err)
	}
	if !info.IsDir() {
		return usagef("PATH: %s is not a folder: give the folder of the operator's main package, like %s", dir, filepath.Dir(dir))
	}
	cmd := goCommand(ctx, dir, "list", "-e", "-f", "{{.Name}}")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("the go command is not in PATH: install Go to build the operator")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	name := strings.TrimSpace(string(out))
	switch {
	case err != nil:
		return usagef("PATH: %s is not a Go package: %s", dir, firstLine(stderr.String(), err))
	case name == "":
		return usagef("PATH: there are no Go files in %s: give the folder of the operator's main package", dir)
	case name != "main":
		return usagef("PATH: %s is package %s, not a main package: give the folder with the operator's func main", dir, name)
	}
	return nil
}

// buildOperator compiles the package in dir into the folder temp. What the compiler
// has to say goes to stderr as it is.
func buildOperator(ctx context.Context, dir, temp string, stderr io.Writer) (string, error) {
	path := filepath.Join(temp, "operator")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	cmd := goCommand(ctx, dir, "build", "-o", path, ".")
	cmd.Stdout, cmd.Stderr = stderr, stderr
	if err := cmd.Run(); ctx.Err() != nil {
		return "", context.Cause(ctx)
	} else if err != nil {
		return "", fmt.Errorf("build the operator in %s: go build: %w", dir, err)
	}
	return path, nil
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
